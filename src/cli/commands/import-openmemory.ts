import { EngineError } from '../../engine/index.ts';
import { openOpenMemoryFile, type OpenMemoryFile } from '../../engine/for-admin.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { startProgress } from '../progress.ts';
import { sendMemories } from '../send-memories.ts';
import { count, counted, oneLine, print, red, span } from '../terminal.ts';

const REASONS_SHOWN = 5;

/**
 * Runs `cairn import openmemory FILE`: sends the memories and facts of an OpenMemory database to a server. OpenMemory's
 * id becomes the `external_id`, so that a repeated import stores nothing twice. If a memory is rejected, the exit code
 * is 1.
 */
export async function importOpenMemory(file: string, options: ConnectionOptions): Promise<void> {
  const client = connect(options);
  const source = open(file);
  const total = source.memories + source.facts;
  print(`${counted(source.memories, 'memory', 'memories')} and ${counted(source.facts, 'fact')} in ${file}`);
  const progress = startProgress('Importing', total);
  const startedAt = performance.now();
  const refusals: { readonly line: number; readonly reason: string }[] = [];
  const ids: string[] = [];
  const lines = async function* () {
    for (const item of source.items()) {
      ids.push(item.external_id);
      yield `${JSON.stringify(item)}\n`;
    }
  };
  const counts = await sendMemories(client, lines(), (_, line, refusal) => {
    progress.update(line);
    if (refusal !== undefined && refusals.length < REASONS_SHOWN) refusals.push({ line, reason: refusal });
  }).finally(() => {
    progress.stop();
    source.close();
  });
  print(
    `${count(counts.accepted)} accepted, ${count(counts.duplicate)} known already, ` +
      `${count(counts.rejected)} rejected in ${span(performance.now() - startedAt)}`,
  );
  const { waypoints, vectors, summaries, relations, logs } = source.leftOut;
  print(
    `left out, as Cairn makes its own: ${counted(waypoints, 'waypoint')}, ${counted(vectors, 'vector')}, ` +
      counted(summaries, 'summary', 'summaries'),
  );
  const others = [
    ...(relations > 0 ? [`${counted(relations, 'relation')} between facts`] : []),
    ...(logs > 0 ? [`${counted(logs, 'row')} of logs`] : []),
  ];
  if (others.length > 0) print(`left out: ${others.join(', ')}`);
  if (counts.rejected === 0) return;
  for (const { line, reason } of refusals) print(red(`${ids[line - 1] ?? `line ${line}`}: ${oneLine(reason)}`));
  if (counts.rejected > refusals.length) print(`and ${count(counts.rejected - refusals.length)} more`);
  process.exitCode = 1;
}

function open(file: string): OpenMemoryFile {
  try {
    return openOpenMemoryFile(file);
  } catch (error) {
    if (error instanceof EngineError) throw new CliError(error.message, { cause: error });
    throw error;
  }
}
