import type { EmbeddingState } from '../../engine/index.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { bold, bytes, count, counted, dim, print, table } from '../terminal.ts';

/**
 * Runs `cairn stats`: prints the numbers of a tenant's memories, jobs, vectors and links, its embedder, and the size of
 * its file.
 */
export async function stats(options: ConnectionOptions): Promise<void> {
  const client = connect(options);
  const [health, sectors, jobs, totals] = await Promise.all([
    client.getHealth(),
    client.listSectors(),
    client.listJobs({ l: 1 }),
    client.getStats(),
  ]);
  const { provider, model, dimensions } = health.embedding;
  const facts: [string, string][] = [
    ['memories', `${count(totals.memories)} (${listed(totals.by_state)})`],
    ['jobs', listed(jobs.counts)],
    ['embedder', model === null ? 'none, words only' : `${provider} ${model}, ${dimensions} dimensions`],
    ['vectors', count(totals.vectors)],
    ...liveModel(totals.embedding),
    ['links', counted(totals.waypoints, 'waypoint')],
    ['size', `${bytes(totals.database_bytes)}, log ${bytes(totals.wal_bytes)}`],
  ];
  print(
    ...table(
      [...facts, ['version', health.version]].map(([name, value]) => [bold(name!), value!]),
      '<<',
    ),
    '',
  );
  const rows = sectors.stats.map(({ sector, count: n, avg_salience }) => [
    sector,
    count(n),
    n === 0 ? '–' : avg_salience.toFixed(2),
  ]);
  const [head, ...body] = table([['sector', 'memories', 'mean salience'], ...rows], '<>>');
  print(dim(head!), ...body);
}

/**
 * Makes a row of the output about the embedding model that made the stored vectors, if it is not the model of the
 * settings. Otherwise returns an empty list.
 */
function liveModel({ live, configured, degraded }: EmbeddingState): [string, string][] {
  if (live === null || JSON.stringify(live) === JSON.stringify(configured)) return [];
  const answers = degraded === null ? 'queries use it' : 'queries find words only';
  const until = `${answers} until \`cairn reembed\` is done`;
  return [['live model', `${live.provider} ${live.model}, ${live.dimensions} dimensions; ${until}`]];
}

function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, n]) => n > 0);
  return parts.length === 0 ? 'none' : parts.map(([name, n]) => `${count(n)} ${name}`).join(', ');
}
