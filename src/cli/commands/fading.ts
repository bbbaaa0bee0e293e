import type { SalienceFall } from '../../client/index.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { bold, counted, cut, dim, print, table, widthOfTerminal, yellow } from '../terminal.ts';

export interface FadingOptions extends ConnectionOptions {
  /** The future day of the preview, Unix ms. */
  readonly by: number;
  /** Assumed rates of decay per day: one for all sectors or some by sector; by default those of the service. */
  readonly lambda?: number | Readonly<Record<string, number>>;
  readonly below?: number;
  readonly json?: boolean;
}

/**
 * Runs `cairn fading`: prints which memories will be archived by a future day because they fade, and which fade most.
 * The rates of decay and the salience under which memories are archived are those of the service, unless `lambda` and
 * `below` assume others.
 */
export async function fading({ by: at, lambda, below, json, ...connection }: FadingOptions): Promise<void> {
  const reply = await connect(connection).previewDecay({ at, lambda, archive_below: below });
  if (json) return print(JSON.stringify(reply, null, 2));
  const { sectors, archived, archives, falls, degraded } = reply;
  const date = new Date(at).toISOString().slice(0, 10);
  if (sectors.length === 0) return print('No memories yet.');
  const rows = sectors.map(({ sector, count, before, after }) => [
    sector,
    String(count),
    before.average.toFixed(2),
    after.average.toFixed(2),
  ]);
  const [head, ...body] = table([['sector', 'memories', 'mean today', `on ${date}`], ...rows], '<>>>');
  print(dim(head!), ...body, '');
  print(bold(`${counted(archived, 'memory', 'memories')} would be archived by ${date}`), ...listed(archives));
  if (falls.length > 0) print('', bold('Falling most'), ...listed(falls));
  if (degraded) print(yellow('Not all memories were counted: the look ended at the limit of its work.'));
}

function listed(falls: readonly SalienceFall[]): string[] {
  const rows = falls.map(({ id, gist, sector, salience_from: from, salience_to: to }) => [
    `${from.toFixed(2)} → ${to.toFixed(2)}`,
    sector,
    id,
    cut(gist, Math.max(20, widthOfTerminal() - 66)),
  ]);
  return table(rows, '<<<<');
}
