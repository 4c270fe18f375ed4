//! As much of HTTP/1.1 as a client of a model needs: one request a connection.

use std::io::{self, BufRead, BufReader, Read, Write};

/// Bounds of what is read.
const HEAD_BYTES_MAX: u64 = 64 << 10;
const BODY_BYTES_MAX: usize = 32 << 20;

/// A request, read completely.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Why a request could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the request is no HTTP: {0}")]
    Malformed(&'static str),
    #[error("the request is too large")]
    TooLarge,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// Reads one request.
pub(super) fn read_request(stream: impl Read) -> Result<HttpRequest, HttpError> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (first.next(), first.next()) else {
        return Err(HttpError::Malformed("no request line"));
    };
    let (mut length, mut chunked) = (0, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|_| HttpError::Malformed("a length that is none"))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.to_ascii_lowercase().contains("chunked");
        }
    }
    let body = if chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
    Ok(HttpRequest { method: method.to_owned(), path: path.to_owned(), body })
}

/// The request line and the headers.
fn read_head(reader: &mut impl BufRead) -> Result<String, HttpError> {
    let mut limited = reader.take(HEAD_BYTES_MAX);
    let mut head = Vec::new();
    loop {
        let before = head.len();
        limited.read_until(b'\n', &mut head)?;
        let line = head.get(before..).unwrap_or_default();
        if line == b"\r\n" || line == b"\n" {
            return String::from_utf8(head).map_err(|_| HttpError::Malformed("headers not UTF-8"));
        }
        if !line.ends_with(b"\n") {
            let whole = limited.limit() == 0;
            return Err(if whole { HttpError::TooLarge } else { HttpError::Malformed("cut off") });
        }
    }
}

fn read_exactly(reader: &mut impl Read, length: usize) -> Result<Vec<u8>, HttpError> {
    if length > BODY_BYTES_MAX {
        return Err(HttpError::TooLarge);
    }
    // Grows with what really comes, not with what was announced.
    let mut body = Vec::new();
    reader.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(HttpError::Malformed("cut off"));
    }
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let number = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(number, 16)
            .map_err(|_| HttpError::Malformed("a chunk without its length"))?;
        if length > BODY_BYTES_MAX.saturating_sub(body.len()) {
            return Err(HttpError::TooLarge);
        }
        if length == 0 {
            // What follows is an empty line, or trailers that nobody needs.
            return Ok(body);
        }
        body.extend(read_exactly(reader, length)?);
        read_line(reader)?;
    }
}

fn read_line(reader: &mut impl BufRead) -> Result<String, HttpError> {
    let mut line = Vec::new();
    reader.take(1024).read_until(b'\n', &mut line)?;
    String::from_utf8(line).map_err(|_| HttpError::Malformed("a chunk without its length"))
}

/// Answers and says that the connection ends with it.
pub(super) fn write_response(
    mut stream: impl Write,
    status: u16,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let reason = if status < 400 { "OK" } else { "Error" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
         cache-control: no-cache\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

/// Answers with something of which nobody knows where it ends, and leaves it there.
pub(super) fn write_half(
    mut stream: impl Write,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HttpRequest, String> {
        read_request(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn request(method: &str, path: &str, body: &str) -> HttpRequest {
        let body = body.as_bytes().to_vec();
        HttpRequest { method: method.to_owned(), path: path.to_owned(), body }
    }

    #[test]
    fn a_body_comes_with_a_length_or_in_chunks() {
        let plain = "POST /a?b=c HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyrest";
        assert_eq!(read(plain), Ok(request("POST", "/a?b=c", "body")));
        let chunks = "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbod\r\n1;x\r\ny\r\n0\r\n\r\n";
        assert_eq!(read(chunks), Ok(request("POST", "/a", "body")));
        assert_eq!(read("HEAD / HTTP/1.1\n\n"), Ok(request("HEAD", "/", "")));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for broken in [
            "",
            "\r\n",
            "GET",
            "GET / HTTP/1.1\r\nhost: x",
            "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nbody",
            "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\nbody",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(read(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(100_000));
        assert_eq!(read(&endless), Err("the request is too large".to_owned()));
        let huge = "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n";
        assert_eq!(read(huge), Err("the request is too large".to_owned()));
        let chunk = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffff\r\n";
        assert_eq!(read(chunk), Err("the request is too large".to_owned()));
    }
}
