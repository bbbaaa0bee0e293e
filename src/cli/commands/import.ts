import fs from 'node:fs';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { startProgress } from '../progress.ts';
import { sendMemories, type ImportCounts } from '../send-memories.ts';
import { bytes, count, counted, oneLine, print, red, span } from '../terminal.ts';

const REASONS_SHOWN = 5;
const LINE_FEED = 10;

/** Runs `cairn import FILE.ndjson`: stores one memory a line; `-` stands for standard input. */
export async function importLines(file: string, options: ConnectionOptions): Promise<void> {
  const client = connect(options);
  const { stream, size } = openSource(file);
  const progress = startProgress('Importing', size);
  const startedAt = performance.now();
  const reasons: { line: number; reason: string }[] = [];
  const meter = createMeter();
  const metered = async function* () {
    for await (const chunk of stream) {
      meter.send(chunk as Buffer);
      yield chunk as Buffer;
    }
  };
  const describe = ({ accepted, duplicate, rejected }: ImportCounts, done: number) => {
    const items = accepted + duplicate + rejected;
    const rate = items / ((performance.now() - startedAt) / 1000);
    return `${bytes(done)} · ${counted(items, 'item')} · ${count(Math.round(rate))}/s`;
  };
  const send = async () => {
    const counts = await sendMemories(client, withoutByteOrderMark(metered()), (soFar, line, refusal) => {
      if (refusal !== undefined && reasons.length < REASONS_SHOWN) reasons.push({ line, reason: refusal });
      const done = meter.answered(line);
      progress.update(done, describe(soFar, done));
    });
    progress.update(meter.sent(), describe(counts, meter.sent()));
    return counts;
  };
  const counts = await send().finally(() => progress.stop());
  print(
    `${count(counts.accepted)} accepted, ${count(counts.duplicate)} known already, ` +
      `${count(counts.rejected)} rejected in ${span(performance.now() - startedAt)}`,
  );
  if (counts.rejected === 0) return;
  for (const { line, reason } of reasons) print(red(`line ${line}: ${oneLine(reason)}`));
  if (counts.rejected > reasons.length) print(`and ${count(counts.rejected - reasons.length)} more`);
  process.exitCode = 1;
}

/** Opens the source of an import; `size` is 0 if it is not known. */
function openSource(file: string): { stream: NodeJS.ReadableStream; size: number } {
  if (file === '-') return { stream: process.stdin, size: 0 };
  const stats = fs.statSync(file);
  if (stats.isDirectory()) throw new CliError(`${file} is a folder; expected a file with one JSON object a line`);
  return { stream: fs.createReadStream(file), size: stats.size };
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Removes a byte order mark, which some editors on Windows put at the start of UTF-8. It may span several chunks. */
async function* withoutByteOrderMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (start === undefined) {
      yield chunk;
      continue;
    }
    start = Buffer.concat([start, chunk]);
    if (start.length < BYTE_ORDER_MARK.length) continue;
    yield afterByteOrderMark(start);
    start = undefined;
  }
  if (start !== undefined) yield start;
}

function afterByteOrderMark(start: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK;
  return start.subarray(0, length).equals(BYTE_ORDER_MARK) ? start.subarray(length) : start;
}

/** Counts the bytes of the source whose lines were answered: sent bytes may still wait in buffers of megabytes. */
function createMeter() {
  /** Numbers of lines ended and bytes sent after each chunk that was not answered yet. */
  const chunks: { readonly lines: number; readonly bytes: number }[] = [];
  let lines = 0;
  let sent = 0;
  let answered = 0;
  return {
    send(chunk: Buffer): void {
      for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) lines++;
      sent += chunk.length;
      chunks.push({ lines, bytes: sent });
    },
    sent: () => sent,
    answered(line: number): number {
      while (chunks.length > 0 && chunks[0]!.lines <= line) answered = chunks.shift()!.bytes;
      return answered;
    },
  };
}
