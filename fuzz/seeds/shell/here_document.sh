bash <<EOF
rm -rf $HOME/a
EOF
cat <<-'X' | sh
	rm b
	X
