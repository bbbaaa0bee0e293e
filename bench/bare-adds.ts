/**
 * The floor of durable adds, started by bench/adds.ts: `node bench/bare-adds.ts FILE`. One thread reads JSON over HTTP
 * and commits in groups, without anything of Cairn but its two tables: a memory is a row of `memories` with its indexes
 * and a row of the word index with its text and its context. There is no job, no check of the request, no key and no
 * search for duplicates. A commit holds all requests that had come by then; they are answered once it is fsynced. The
 * program prints its address as JSON.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'better-sqlite3';
import { openStore } from '../src/engine/store/open-store.ts';

interface Memory {
  readonly content: string;
  readonly session_id: string;
}

const file = process.argv[2]!;
openStore(file, { role: 'acknowledger', create: true }).close();
const db = new Database(file);
db.pragma('synchronous = FULL');
// As for Cairn's writer: somebody else moves the log into the database.
db.pragma('wal_autocheckpoint = 0');
const insertMemory = db.prepare(
  `INSERT INTO memories (id, user_no, session_id, event_time, event_time_given, created_at, updated_at, content_hash,
     content)
   VALUES (?, 1, ?, ?, 0, ?, ?, ?, ?)`,
);
const insertWords = db.prepare('INSERT INTO memory_text (rowid, context, content) VALUES (?, ?, ?)');
/** The last two texts of each session, which are the context of the next one. */
const lastTexts = new Map<string, readonly string[]>();

let waiting: { readonly memories: readonly Memory[]; readonly response: http.ServerResponse }[] = [];

function insert({ content, session_id: session }: Memory): string {
  const id = randomUUID();
  const now = Date.now();
  const before = lastTexts.get(session) ?? [];
  const { lastInsertRowid } = insertMemory.run(id, session, now, now, now, randomBytes(8), content);
  insertWords.run(lastInsertRowid, before.join('\n'), content);
  lastTexts.set(session, [...before.slice(-1), content]);
  return id;
}

const commit = db.transaction((group: typeof waiting) => group.map(({ memories }) => memories.map(insert)));

function commitWaiting(): void {
  const group = waiting;
  waiting = [];
  for (const [index, ids] of commit.immediate(group).entries()) {
    const body = JSON.stringify(ids.map((id) => ({ id })));
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    group[index]!.response.writeHead(202, headers).end(body);
  }
}

const server = http.createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Memory | { readonly items: readonly Memory[] };
    if (waiting.length === 0) setImmediate(commitWaiting);
    waiting.push({ memories: 'items' in body ? body.items : [body], response });
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
});
process.on('SIGTERM', () => process.exit());
