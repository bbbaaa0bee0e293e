import { connect, type ConnectionOptions } from '../client.ts';
import { age, bold, cut, dim, print, widthOfTerminal, yellow } from '../terminal.ts';

export interface PairOptions extends ConnectionOptions {
  readonly user?: string;
  readonly minSimilarity?: number;
  readonly limit: number;
  readonly json?: boolean;
}

interface Side {
  readonly id: string;
  readonly content: string;
  readonly event_time: number;
}

/**
 * Runs `cairn contradictions`: prints pairs of memories that may contradict each other and about which nobody has
 * decided yet, at most `limit`.
 */
export async function listContradictions({ user, limit, json, ...connection }: PairOptions): Promise<void> {
  const reply = await connect(connection).listContradictions({ limit, user_id: user });
  if (json) return print(JSON.stringify(reply, null, 2));
  if (reply.items.length === 0) return print('No contradiction is proposed.');
  for (const { user_id: owner, earlier, later, by } of reply.items)
    printPair(`${owner === '' ? 'no user' : owner}, ${by === 'form' ? 'by their form' : 'by a language model'}`, [
      earlier,
      later,
    ]);
}

/** Runs `cairn duplicates`: prints pairs of memories that say nearly the same, at most `limit`. */
export async function listNearDuplicates(options: PairOptions): Promise<void> {
  const { user, minSimilarity: least, limit, json, ...connection } = options;
  const reply = await connect(connection).listNearDuplicates({ limit, user_id: user, min_similarity: least });
  if (json) return print(JSON.stringify(reply, null, 2));
  if (reply.items.length === 0) return print('No two memories are this similar.');
  for (const { user_id: owner, earlier, later, similarity } of reply.items)
    printPair(`${owner === '' ? 'no user' : owner}, similarity ${similarity.toFixed(3)}`, [earlier, later]);
  if (reply.degraded) print(yellow('There may be more: the search ended at the limit of its work.'));
}

function printPair(head: string, sides: readonly [earlier: Side, later: Side]): void {
  print(bold(head));
  for (const { id, content, event_time: at } of sides) {
    const facts = `${id}  ${age(at)}`;
    print(`  ${dim(facts)}`, `  ${cut(content, widthOfTerminal() - 2)}`);
  }
}
