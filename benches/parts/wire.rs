//! The server's own protocol, for what the gateway would be slow at or refuses.

use std::{
    fmt::Write as _,
    io::{self, BufReader, Read, Write},
    net::TcpStream,
    thread,
};

use edgefront_gateway::server::Server;

/// What the server answers to a command.
pub fn ask(server: &Server, command: &str) -> io::Result<String> {
    let mut stream = connect(server)?;
    write!(stream, "{command}\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Lets `write` send commands, and returns when all are executed.
pub fn feed<T>(server: &Server, write: impl FnOnce(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
    let mut stream = connect(server)?;
    let replies = stream.try_clone()?;
    // Read meanwhile, else both ends would come to wait for each other.
    let reader = thread::spawn(move || -> io::Result<()> {
        let (mut replies, mut end, mut chunk) = (BufReader::new(replies), Vec::new(), vec![0; 1 << 16]);
        while !end.ends_with(b"+PONG\r\n") {
            let length = replies.read(&mut chunk)?;
            end.extend_from_slice(&chunk[..length]);
            end.drain(..end.len().saturating_sub(16));
        }
        Ok(())
    });
    let fed = write(&mut stream)?;
    stream.write_all(b"PING\r\n")?;
    reader.join().expect("no panic")?;
    Ok(fed)
}

/// Adds a command as the server reads it.
pub fn command(text: &mut String, words: impl IntoIterator<Item = impl AsRef<str>>) {
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
