//! A minimal HTTP/1.1 server for clients of a model: one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};

/// Limits of the request size.
const HEAD_BYTES_MAX: u64 = 64 << 10;
const BODY_BYTES_MAX: usize = 32 << 20;

/// A complete request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Why a request could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpRequestError {
    #[error("the request is not HTTP: {0}")]
    Malformed(&'static str),
    #[error("the request is too large")]
    TooLarge,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads one request.
pub(super) fn read_request(stream: impl Read) -> Result<HttpRequest, HttpRequestError> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (first.next(), first.next()) else {
        return Err(HttpRequestError::Malformed("the request line is missing"));
    };
    let (mut length, mut chunked) = (0, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value
                .parse()
                .map_err(|_| HttpRequestError::Malformed("the content length is invalid"))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.to_ascii_lowercase().contains("chunked");
        }
    }
    let body = if chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
    Ok(HttpRequest { method: method.to_owned(), path: path.to_owned(), body })
}

/// Reads the request line and the headers.
fn read_head(reader: &mut impl BufRead) -> Result<String, HttpRequestError> {
    let mut limited = reader.take(HEAD_BYTES_MAX);
    let mut head = Vec::new();
    loop {
        let before = head.len();
        limited.read_until(b'\n', &mut head)?;
        let line = head.get(before..).unwrap_or_default();
        if line == b"\r\n" || line == b"\n" {
            return String::from_utf8(head)
                .map_err(|_| HttpRequestError::Malformed("the headers are not UTF-8"));
        }
        if !line.ends_with(b"\n") {
            let is_too_large = limited.limit() == 0;
            return Err(if is_too_large {
                HttpRequestError::TooLarge
            } else {
                HttpRequestError::Malformed("it ended too early")
            });
        }
    }
}

fn read_exactly(reader: &mut impl Read, length: usize) -> Result<Vec<u8>, HttpRequestError> {
    if length > BODY_BYTES_MAX {
        return Err(HttpRequestError::TooLarge);
    }
    // The buffer grows with the received bytes, not with the announced length.
    let mut body = Vec::new();
    reader.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(HttpRequestError::Malformed("it ended too early"));
    }
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> Result<Vec<u8>, HttpRequestError> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let number = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(number, 16)
            .map_err(|_| HttpRequestError::Malformed("the length of a chunk is missing"))?;
        if length > BODY_BYTES_MAX.saturating_sub(body.len()) {
            return Err(HttpRequestError::TooLarge);
        }
        if length == 0 {
            // An empty line or unneeded trailers follow.
            return Ok(body);
        }
        body.extend(read_exactly(reader, length)?);
        read_line(reader)?;
    }
}

fn read_line(reader: &mut impl BufRead) -> Result<String, HttpRequestError> {
    let mut line = Vec::new();
    reader.take(1024).read_until(b'\n', &mut line)?;
    String::from_utf8(line)
        .map_err(|_| HttpRequestError::Malformed("the length of a chunk is missing"))
}

/// Sends a response that closes the connection.
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

/// Sends an incomplete response without a length.
pub(super) fn write_incomplete(
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
    fn a_body_has_a_length_or_comes_in_chunks() {
        let plain = "POST /a?b=c HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyrest";
        assert_eq!(read(plain), Ok(request("POST", "/a?b=c", "body")));
        let chunks = "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbod\r\n1;x\r\ny\r\n0\r\n\r\n";
        assert_eq!(read(chunks), Ok(request("POST", "/a", "body")));
        assert_eq!(read("HEAD / HTTP/1.1\n\n"), Ok(request("HEAD", "/", "")));
    }

    #[test]
    fn an_invalid_request_is_refused() {
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
    fn a_request_that_is_too_large_is_refused() {
        let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(100_000));
        assert_eq!(read(&endless), Err("the request is too large".to_owned()));
        let huge = "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n";
        assert_eq!(read(huge), Err("the request is too large".to_owned()));
        let chunk = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffff\r\n";
        assert_eq!(read(chunk), Err("the request is too large".to_owned()));
    }
}
