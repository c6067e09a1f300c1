use super::*;
use std::io::Write;

#[test]
fn an_endless_file_without_a_length_is_given_up() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.npz", server.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let head = b"HTTP/1.1 200 OK\r\nETag: \"one\"\r\nConnection: close\r\n\r\nPK\x03\x04";
        stream.write_all(head).unwrap();
        while stream.write_all(&[0; 4096]).is_ok() {}
    });
    let folder = tempfile::tempdir().unwrap();
    let options = Options { limit: 100_000, ..Options::default() };
    let error = fetch(&url, &folder.path().join("x.npz"), options, &|_| Ok(()), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("more than 100000 bytes"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The server announces twenty bytes and never stops sending. The twenty bytes are not a data file, so
/// nothing is kept.
#[test]
fn nothing_beyond_the_announced_length_is_stored() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}/x.npz", server.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nETag: \"one\"\r\n\r\nPK\x03\x04";
        stream.write_all(head).unwrap();
        while stream.write_all(&[0; 4096]).is_ok() {}
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let file = fetch(&url, &path, Options::default(), &|_| Ok(()), &mut |_| {}).unwrap();
    assert_eq!((file.record.size, std::fs::metadata(&path).unwrap().len()), (Some(20), 20));
    let record = std::fs::read_to_string(folder.path().join("x.npz.json")).unwrap();
    assert!(!record.contains("secret") && !file.record.url.contains("me:"), "{record}");
}
