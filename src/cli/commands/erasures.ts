import { connect, type ConnectionOptions } from '../client.ts';
import { dim, print, table } from '../terminal.ts';

interface ErasuresOptions extends ConnectionOptions {
  readonly limit: number;
  readonly json?: boolean;
}

/** Runs `cairn erasures`: prints the receipts of deletes, newest first, at most `limit`. */
export async function listErasures({ limit, json, ...connection }: ErasuresOptions): Promise<void> {
  const reply = await connect(connection).listErasures({ l: limit });
  if (json) return print(JSON.stringify(reply, null, 2));
  if (reply.items.length === 0) return print('Nothing was forgotten yet.');
  const rows = reply.items.map(({ id, kind, key, begun_at: at, closed_at: closed, counts, chain_no: no }) => [
    no === null ? '–' : String(no),
    new Date(at).toISOString(),
    id,
    kind,
    key ?? '–',
    closed === null ? 'running' : `${counts['memories'] ?? 0}`,
  ]);
  const [head, ...body] = table([['no.', 'begun', 'receipt', 'of', 'key', 'memories'], ...rows], '><<<<>');
  print(dim(head!), ...body);
}
