import type { QueryFederationInput } from '../../client/index.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeHit } from '../show-hits.ts';
import { dim, print, table, yellow } from '../terminal.ts';
import type { QueryCommandOptions } from './query.ts';

export interface FederationOptions extends ConnectionOptions {
  readonly tenant?: string;
  readonly serverKey?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn federation add NAME ADDRESS`: registers another Cairn server, with the key in `serverKey` or
 * CAIRN_SERVER_KEY, and prints how to query it.
 * @throws CliError for a registration that the server refuses
 */
export async function addServer(name: string, address: string, options: FederationOptions): Promise<void> {
  const { tenant, serverKey = process.env.CAIRN_SERVER_KEY, json, ...connection } = options;
  const added = await connect(connection).addServer({
    ...{ name, url: address },
    ...(serverKey ? { key: serverKey } : {}),
    ...(tenant === undefined ? {} : { tenant }),
  });
  print(
    json ? JSON.stringify(added) : `${added.name}  may be asked from now on: cairn query --servers ${added.name} …`,
  );
}

/** Runs `cairn federation list`: prints one line for each registered server, or the server's reply with `json`. */
export async function listServers({ json, ...connection }: FederationOptions): Promise<void> {
  const page = await connect(connection).listServers();
  if (json) return print(JSON.stringify(page));
  const rows = page.items.map(({ name, url, tenant, has_key: hasKey, written_by: by }) => [
    name,
    tenant ?? '',
    hasKey ? 'yes' : 'no',
    by ?? '',
    url,
  ]);
  const [head, ...body] = table([['name', 'tenant', 'key', 'by', 'url'], ...rows], '<<<<<');
  print(dim(head!), ...body);
}

/**
 * Runs `cairn federation remove NAME`: removes a registered server and its key.
 * @throws CliError if there is none
 */
export async function removeServer(name: string, connection: FederationOptions): Promise<void> {
  await connect(connection).removeServer({ name });
  print(`${name}  removed`);
}

/** Options of a query to several members. */
export interface FederatedQueryOptions extends QueryCommandOptions {
  /** Tenants of the server that are queried together; by default all tenants of the key. */
  readonly tenants?: readonly string[];
  /** Registered servers that are queried as well. */
  readonly servers?: readonly string[];
}

/** Options of a query that federated queries do not have, since their meaning depends on the server that answers. */
const NOT_FEDERATED = ['explain', 'format', 'profile', 'similarity', 'include'] as const;

/**
 * Runs `cairn query --tenants A,B --servers C`: prints the best hits of all members, each with its origin, and which
 * members did not answer.
 * @throws CliError for an option that federated queries do not have
 */
export async function queryFederation(words: readonly string[], options: FederatedQueryOptions): Promise<void> {
  const wrong = NOT_FEDERATED.find((name) => options[name] !== undefined);
  if (wrong !== undefined)
    throw new CliError(`--${wrong} is not possible with --tenants and --servers`, { exitCode: 2 });
  const query = words.join(' ');
  const answer = await connect(options).queryFederation(bodyOf(query, options));
  if (options.json) return print(JSON.stringify(answer, null, 2));
  const silent = answer.members.filter(({ outcome }) => outcome !== 'answered');
  for (const { tenant, server, detail } of silent)
    print(yellow(`${nameOf({ tenant, server })} did not answer: ${detail}`));
  if (silent.length > 0) print('');
  const now = Date.now();
  const lines = answer.matches.flatMap(({ origin, ...match }, place) => [
    ...(place === 0 ? [] : ['']),
    ...describeHit(match, { rank: place + 1, query, now, origin: nameOf(origin) }),
  ]);
  print(...(lines.length === 0 ? ['No memory matches.'] : lines));
}

function bodyOf(query: string, options: FederatedQueryOptions): QueryFederationInput {
  const { tenants, servers } = options;
  return {
    query,
    k: options.k,
    user_id: options.user,
    min_score: options.minScore,
    cut: options.cut,
    as_of: options.asOf,
    deep_recall: options.deep,
    tenants: tenants && [...tenants],
    servers: servers && [...servers],
  };
}

function nameOf({ tenant, server }: { readonly tenant: string | null; readonly server: string | null }): string {
  if (server === null) return `tenant ${tenant}`;
  return tenant === null ? server : `${server}/${tenant}`;
}
