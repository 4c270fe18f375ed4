use median::median;

#[test]
fn the_median_is_the_middle_of_the_sorted_values() {
    assert_eq!(median(&[5.0, 1.0, 3.0]), 3.0);
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
}
