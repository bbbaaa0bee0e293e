import { connect, type ConnectionOptions } from '../client.ts';
import { describeHits, type QueryReply } from '../show-hits.ts';
import { print, yellow } from '../terminal.ts';

export interface QueryCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly k?: number;
  readonly explain?: boolean;
  readonly json?: boolean;
}

/** `cairn query TEXT…` */
export async function query(words: readonly string[], options: QueryCommandOptions): Promise<void> {
  const text = words.join(' ');
  const reply = await connect(options).post<QueryReply>('/memory/query', {
    query: text,
    k: options.k,
    user_id: options.user,
    explain: options.explain,
  });
  if (options.json) return print(JSON.stringify(reply, null, 2));
  if (reply.degraded)
    print(yellow('The embedding provider did not answer in time: these hits rest on words alone.'), '');
  print(...(reply.matches.length === 0 ? ['No memory matches.'] : describeHits(reply.matches, text)));
}
