import fs from 'node:fs';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { isPacked, openBytes, withoutByteOrderMark } from '../open-source.ts';
import { startProgress } from '../progress.ts';
import { sendMemories, type ImportCounts } from '../send-memories.ts';
import { bytes, count, counted, oneLine, print, red, span } from '../terminal.ts';

const REASONS_SHOWN = 5;
const LINE_FEED = 10;

/**
 * Runs `cairn import FILE.ndjson`: stores one memory for each line of a file, which may be gzip; `-` is standard input.
 * If a line is rejected, the exit code is 1.
 */
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

/**
 * Opens the source of an import; `-` is the standard input. `size` is its length in bytes; 0 if it is not known.
 * @throws CliError for a folder
 */
function openSource(file: string): { stream: AsyncIterable<Uint8Array | string>; size: number } {
  if (file === '-') return { stream: process.stdin, size: 0 };
  const stats = fs.statSync(file);
  if (stats.isDirectory()) throw new CliError(`${file} is a folder; expected a file with one JSON object a line`);
  return { stream: openBytes(file, undefined), size: isPacked(file) ? 0 : stats.size };
}

/**
 * Counts the bytes of the source whose lines the server has answered, for the progress bar. Bytes that were only sent
 * do not count, since megabytes of them may still be in buffers.
 */
function createMeter() {
  /**
   * Chunks of which the server has not answered every line. `lines` and `bytes` are the totals sent up to the end of
   * the chunk.
   */
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
