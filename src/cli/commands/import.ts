import fs from 'node:fs';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { startProgress } from '../progress.ts';
import { sendMemories } from '../send-memories.ts';
import { bytes, count, counted, oneLine, print, red, span } from '../terminal.ts';

const REASONS_SHOWN = 5;

/** `cairn import FILE.ndjson` */
export async function importLines(file: string, options: ConnectionOptions): Promise<void> {
  const client = connect(options);
  const { stream, size } = openSource(file);
  const progress = startProgress('Importing', size);
  const startedAt = performance.now();
  const reasons: { line: number; reason: string }[] = [];
  let read = 0;
  const counting = async function* () {
    for await (const chunk of stream) {
      read += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  const counts = await sendMemories(client, counting(), ({ accepted, duplicate, rejected }, refusal) => {
    if (refusal !== undefined && reasons.length < REASONS_SHOWN) reasons.push(refusal);
    const items = accepted + duplicate + rejected;
    const rate = items / ((performance.now() - startedAt) / 1000);
    progress.update(read, `${bytes(read)} · ${counted(items, 'item')} · ${count(Math.round(rate))}/s`);
  }).finally(() => progress.stop());
  print(
    `${count(counts.accepted)} accepted, ${count(counts.duplicate)} known already, ${count(counts.rejected)} rejected ` +
      `in ${span(performance.now() - startedAt)}`,
  );
  if (counts.rejected === 0) return;
  for (const { line, reason } of reasons) print(red(`line ${line}: ${oneLine(reason)}`));
  if (counts.rejected > reasons.length) print(`and ${count(counts.rejected - reasons.length)} more`);
  process.exitCode = 1;
}

/** The size is 0 where nobody can tell. */
function openSource(file: string): { stream: NodeJS.ReadableStream; size: number } {
  if (file === '-') return { stream: process.stdin, size: 0 };
  const stats = fs.statSync(file);
  if (stats.isDirectory()) throw new CliError(`${file} is a folder; expected a file with one JSON object a line`);
  return { stream: fs.createReadStream(file), size: stats.size };
}
