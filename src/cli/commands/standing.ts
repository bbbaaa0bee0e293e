import { connect, type ConnectionOptions } from '../client.ts';
import { bold, dim, oneLine, print, table } from '../terminal.ts';

export interface StandingOptions extends ConnectionOptions {
  readonly user?: string;
  readonly minScore?: number;
  readonly filters?: object;
  readonly webhook?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn standing add`: stores a standing query, which is compared with each new memory. Prints the secret of its
 * webhook if it has one.
 */
export async function addStanding(words: string[], options: StandingOptions): Promise<void> {
  const { user, minScore, filters, webhook: url, json, ...connection } = options;
  const created = await connect(connection).createStandingQuery({
    query: words.join(' '),
    ...(user === undefined ? {} : { user_id: user }),
    ...(minScore === undefined ? {} : { min_score: minScore }),
    ...(filters === undefined ? {} : { filters }),
    ...(url === undefined ? {} : { webhook: { url } }),
  });
  if (json) return print(JSON.stringify(created));
  print(`${created.id}  from now on you are told of each memory that answers it`);
  if (created.webhook !== null) print(`secret of its webhook, shown this once: ${bold(created.webhook.secret)}`);
}

/** Runs `cairn standing list`: prints up to 1,000 standing queries. */
export async function listStanding({ user, json, ...connection }: StandingOptions): Promise<void> {
  const page = await connect(connection).listStandingQueries({ l: 1000, user_id: user });
  if (json) return print(JSON.stringify(page));
  const rows = page.items.map(({ id, query, user_id: userId, written_by: by, answers }) => [
    id,
    String(answers),
    userId ?? '',
    by ?? '',
    oneLine(query),
  ]);
  const [head, ...body] = table([['id', 'answers', 'user', 'key', 'question'], ...rows], '<><<<');
  print(dim(head!), ...body);
}

/** Runs `cairn standing answers ID`: prints up to 1,000 memories that answered a standing query. */
export async function standingAnswers(id: string, { json, ...connection }: StandingOptions): Promise<void> {
  const page = await connect(connection).listStandingAnswers({ id, l: 1000 });
  if (json) return print(JSON.stringify(page));
  for (const { at, memory_id: memory, score, supersedes } of page.items) {
    const how = score === null ? `supersedes ${supersedes}` : score.toFixed(3);
    print(`${new Date(at).toISOString()}  ${memory}  ${how}`);
  }
}

/** Runs `cairn standing remove ID`: deletes a standing query with its answers and its webhook. */
export async function removeStanding(id: string, connection: ConnectionOptions): Promise<void> {
  await connect(connection).deleteStandingQuery({ id });
  print(`${id}  removed`);
}
