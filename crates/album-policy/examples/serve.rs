//! A policy behind a TCP socket: one observation per input line, one action per output line.
//!
//! ```text
//! cargo run --release -p album-policy --example serve -- policy.safetensors 127.0.0.1:7000
//! echo "0.3 21.5 0.0" | nc 127.0.0.1 7000
//! ```
#![allow(clippy::print_stderr)]

use album_policy::Policy;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(address)) = (args.next(), args.next()) else {
        return Err("usage: serve POLICY.safetensors ADDRESS".into());
    };
    let mut policy = Policy::load(file)?;
    let listener = TcpListener::bind(address)?;
    eprintln!("{} on {}", policy.manifest().task, listener.local_addr()?);
    for stream in listener.incoming() {
        // One connection at a time; for several, use a policy per thread.
        if let Err(e) = serve(&mut policy, stream?) {
            eprintln!("{e}");
        }
    }
    Ok(())
}

fn serve(policy: &mut Policy, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut action = vec![0.0; policy.manifest().decision_len()];
    for line in BufReader::new(stream.try_clone()?).lines() {
        let observation: Result<Vec<f32>, _> = line?.split_whitespace().map(str::parse).collect();
        let answer = match observation.map(|observation| policy.act(&observation, &mut action)) {
            Ok(Ok(())) => action.iter().map(f32::to_string).collect::<Vec<_>>().join(" "),
            Ok(Err(e)) => format!("error: {e}"),
            Err(e) => format!("error: {e}"),
        };
        writeln!(stream, "{answer}")?;
    }
    Ok(())
}
