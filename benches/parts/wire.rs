//! RESP, the server's own protocol: for commands that the gateway refuses, and for bulk loads.

use std::{
    fmt::Write as _,
    io::{self, BufReader, Read, Write},
    net::TcpStream,
    thread,
};

use edgefront_gateway::server::Server;

/// Sends one command and returns the server's reply.
pub fn send(server: &Server, command: &str) -> io::Result<String> {
    let mut stream = connect(server)?;
    write!(stream, "{command}\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Sends the commands that `write` writes, and returns when the server has executed all of them.
pub fn send_all<T>(server: &Server, write: impl FnOnce(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
    let mut stream = connect(server)?;
    let replies = stream.try_clone()?;
    // Replies are read concurrently; otherwise both ends would wait for each other.
    let reader = thread::spawn(move || -> io::Result<()> {
        let (mut replies, mut end, mut chunk) = (BufReader::new(replies), Vec::new(), vec![0; 1 << 16]);
        while !end.ends_with(b"+PONG\r\n") {
            let length = replies.read(&mut chunk)?;
            end.extend_from_slice(&chunk[..length]);
            end.drain(..end.len().saturating_sub(16));
        }
        Ok(())
    });
    let result = write(&mut stream)?;
    stream.write_all(b"PING\r\n")?;
    reader.join().expect("no panic")?;
    Ok(result)
}

/// Appends a command, encoded in RESP.
pub fn push_command(text: &mut String, words: impl IntoIterator<Item = impl AsRef<str>>) {
    let words: Vec<_> = words.into_iter().collect();
    // Writing to a String cannot fail.
    let _ = write!(text, "*{}\r\n", words.len());
    for word in words {
        let word = word.as_ref();
        let _ = write!(text, "${}\r\n{word}\r\n", word.len());
    }
}

fn connect(server: &Server) -> io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", server.port()))
}
