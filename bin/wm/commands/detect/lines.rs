//! `--jsonl FIELD`: a text in each line of a file of JSON objects.
//!
//! Lines are read one at a time. One that is no JSON, lacks the field or is too long is its own
//! record, and the next line goes on. What a line holds is never repeated in an error.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use greenmark::Error;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::inputs::{Input, Label, Line};

/// Longest line in bytes.
pub(super) const MAX_LINE: u64 = 32 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of one file, or of standard input for `-`.
pub(super) struct Lines {
    reader: Box<dyn BufRead + Send>,
    path: Arc<Path>,
    /// Of the line that was read last.
    number: u64,
    /// Of the next byte.
    offset: u64,
    /// Whether a line gave an input.
    any: bool,
    ended: bool,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let reader: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
            Box::new(BufReader::new(file))
        };
        Ok(Self { reader, path: path.into(), number: 0, offset: 0, any: false, ended: false })
    }

    /// The bytes of the next line with its end; at most [`MAX_LINE`] and one more of a line that is
    /// too long, of which the rest is passed over.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
        self.offset += line.len() as u64;
        if line.len() as u64 > MAX_LINE {
            let mut last = line.last().copied();
            while last.is_some_and(|last| last != b'\n') {
                let part = self.reader.fill_buf()?;
                let end = part.iter().position(|&byte| byte == b'\n');
                let used = end.map_or(part.len(), |end| end + 1);
                last = part[..used].last().copied();
                self.reader.consume(used);
                self.offset += used as u64;
            }
        }
        Ok(line)
    }

    fn broken(&self, line: Option<u64>, error: Error) -> Input {
        Input::Broken { label: Label { path: self.path.to_path_buf(), line, id: None }, error }
    }
}

impl Iterator for Lines {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        while !self.ended {
            let mut offset = self.offset;
            let mut bytes = match self.read() {
                Ok(bytes) => bytes,
                Err(source) => {
                    self.ended = true;
                    return Some(self.broken(None, Error::io("read", &self.path, source)));
                }
            };
            if bytes.is_empty() {
                self.ended = true;
                let nothing = "the file holds no line of JSON";
                let remedy = "give a file with one JSON object a line";
                return (!self.any)
                    .then(|| self.broken(None, Error::file(&self.path, None, nothing, remedy)));
            }
            self.number += 1;
            if bytes.len() as u64 > MAX_LINE {
                self.any = true;
                let problem = format!("line {} is longer than {MAX_LINE} bytes", self.number);
                let remedy = "put that text into a file of its own";
                let error = Error::file(&self.path, offset, problem, remedy);
                return Some(self.broken(Some(self.number), error));
            }
            if self.number == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
                offset += BYTE_ORDER_MARK.len() as u64;
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.any = true;
            let (path, number) = (Arc::clone(&self.path), self.number);
            return Some(Input::Line(Line { path, number, offset, bytes }));
        }
        None
    }
}

/// The text in the field `field` of a line.
pub(super) fn parse(line: &Line, field: &str) -> Input {
    let label = Label { path: line.path.to_path_buf(), line: Some(line.number), id: None };
    let refuse = |label: Label, at: u64, problem: String| {
        let problem = format!("line {}: {problem}", line.number);
        let remedy = format!("each line is one JSON object with a text in the field `{field}`");
        Input::Broken { error: Error::file(&line.path, line.offset + at, problem, remedy), label }
    };
    // Also keeps the parser from quoting a bare string in its error.
    if line.bytes.trim_ascii_start().first() != Some(&b'{') {
        return refuse(label, 0, "not a JSON object".to_owned());
    }
    let mut parser = serde_json::Deserializer::from_slice(&line.bytes);
    let fields = Fields { field }.deserialize(&mut parser).and_then(|fields| {
        parser.end()?;
        Ok(fields)
    });
    match fields {
        Ok(Found { text, id }) => {
            let label = Label { id, ..label };
            match text {
                Some(Ok(text)) => Input::Text { label, text },
                Some(Err(problem)) => refuse(label, 0, format!("the field `{field}` {problem}")),
                None => refuse(label, 0, format!("there is no field `{field}`")),
            }
        }
        Err(error) => {
            let column = error.column().saturating_sub(1) as u64;
            // The parser counts lines of its own.
            let problem = error.to_string();
            let problem = problem.split(" at line ").next().unwrap_or_default();
            refuse(label, column, problem.to_owned())
        }
    }
}

/// What is taken from a line.
struct Found {
    /// The text, or what is wrong with the field.
    text: Option<Result<String, String>>,
    id: Option<Value>,
}

/// Reads the object of a line and keeps two of its fields.
struct Fields<'a> {
    field: &'a str,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Found;

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<Found, D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found { text: None, id: None };
        while let Some(name) = map.next_key::<String>()? {
            if name == self.field {
                let text = match map.next_value::<Value>()? {
                    // Which of two was meant nobody can say.
                    _ if found.text.is_some() => Err("stands twice".to_owned()),
                    Value::String(text) => Ok(text),
                    other => Err(format!("is {}, not a text", kind_of(&other))),
                };
                found.text = Some(text);
            } else if name == "id" {
                found.id = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
