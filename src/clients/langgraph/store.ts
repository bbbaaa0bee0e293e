import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
  validateNamespace,
} from '@langchain/langgraph-checkpoint';
import { connect, type CairnOptions, type Send } from '../connection.ts';

export interface CairnStoreOptions extends CairnOptions {
  /** The user who owns all items of this store; by default they belong to no user. */
  readonly userId?: string | undefined;
  /** Minutes until an item expires, from its last put or (see `refreshOnRead`) read; by default items do not expire. */
  readonly ttl?: number | undefined;
  /** Whether a read restarts the `ttl` of the items that it returns; true by default. */
  readonly refreshOnRead?: boolean | undefined;
}

/** Greatest number of requests of a batch that are in flight at once. */
const AT_ONCE = 8;
/** Greatest number of entries of one reply. */
const PAGE = 1_000;

/** An item as the server sends it. */
interface SentItem {
  readonly namespace: string[];
  readonly key: string;
  readonly value: Record<string, unknown>;
  readonly created_at: string;
  readonly updated_at: string;
  readonly score?: number;
}

/**
 * A store of LangGraph whose items are kept by a Cairn server. Every item is also a memory: it is classified, embedded,
 * linked and found by queries of its user. In a batch, reads see what was stored before the batch, and the last put of
 * a key wins. A batch is not a transaction: if one put is refused, others may have been stored.
 */
export class CairnStore extends BaseStore {
  readonly #send: Send;
  readonly #owner: { readonly user_id?: string };
  readonly #ttl: number | undefined;
  readonly #reading: { readonly refresh_ttl?: false };

  constructor(options: CairnStoreOptions) {
    super();
    this.#send = connect(options);
    this.#owner = options.userId === undefined ? {} : { user_id: options.userId };
    this.#ttl = options.ttl;
    this.#reading = options.refreshOnRead === false ? { refresh_ttl: false } : {};
  }

  /**
   * Runs operations and returns their results in order. Reads run first, then puts.
   * @throws InvalidNamespaceError for a namespace that LangGraph forbids, before anything is sent; TypeError for a
   *   filter with an undefined value; what `Send` throws, such as CairnError for a request that the server refused
   */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const puts = new Map<string, PutOperation>();
    const reads = operations.map((operation): (() => Promise<unknown>) => {
      if ('namespacePrefix' in operation) {
        validateNamespace(operation.namespacePrefix, { allowEmpty: true, allowReservedRoot: true });
        return () => this.#search(operation);
      }
      if (!('namespace' in operation)) return () => this.#listNamespaces(operation);
      validateNamespace(operation.namespace, { allowReservedRoot: true });
      if (!('value' in operation)) return () => this.#get(operation);
      puts.set(JSON.stringify([operation.namespace, operation.key]), operation);
      return () => Promise.resolve(undefined);
    });
    const results = await allOf(reads);
    await allOf([...puts.values()].map((put) => () => this.#put(put)));
    return results as OperationResults<Op>;
  }

  async #get({ namespace, key }: GetOperation): Promise<Item | null> {
    const refresh = this.#reading.refresh_ttl === false ? { refresh_ttl: 'false' } : {};
    const query = new URLSearchParams({ namespace: namespace.join('.'), key, ...refresh, ...this.#owner });
    const item = (await this.#send('GET', `/store/items?${query.toString()}`)) as SentItem | null;
    return item === null ? null : toItem(item);
  }

  async #put({ namespace, key, value, index }: PutOperation): Promise<void> {
    const place = { namespace, key, ...this.#owner };
    if (value === null) return void (await this.#send('DELETE', '/store/items', place));
    await this.#send('PUT', '/store/items', { ...place, value, index, ttl: this.#ttl });
  }

  async #search({ namespacePrefix, filter, query, limit = 10, offset = 0 }: SearchOperation): Promise<SearchItem[]> {
    // JSON would drop the condition, and the search would find items that it must not find.
    for (const [name, condition] of Object.entries(filter ?? {}))
      if (condition === undefined) throw new TypeError(`filter.${name} is undefined: leave it out, or give a value`);
    const asked = { namespace_prefix: namespacePrefix, filter, query, ...this.#reading, ...this.#owner };
    return pagesOf(limit, async (found, most) => {
      const body = { ...asked, limit: most, offset: offset + found };
      const { items, truncated } = (await this.#send('POST', '/store/items/search', body)) as {
        readonly items: readonly SentItem[];
        readonly truncated?: true;
      };
      return {
        entries: items.map((item) => ({ ...toItem(item), ...(item.score === undefined ? {} : { score: item.score }) })),
        isLast: truncated !== true && items.length < most,
      };
    });
  }

  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, offset = 0, limit = Infinity } = operation;
    const [prefix, ...otherPrefixes] = matchConditions.filter(({ matchType }) => matchType === 'prefix');
    const [suffix, ...otherSuffixes] = matchConditions.filter(({ matchType }) => matchType === 'suffix');
    const others = [...otherPrefixes, ...otherSuffixes];
    const asked = { prefix: prefix?.path, suffix: suffix?.path };
    if (others.length === 0) return this.#askForNamespaces({ ...asked, max_depth: maxDepth }, offset, limit);
    // The server takes one prefix and one suffix. Further conditions are checked here, before paths are cut to the
    // wanted depth.
    const all = await this.#askForNamespaces(asked, 0, Infinity);
    const matching = all.filter((labels) => others.every((condition) => matches(condition, labels)));
    const cut = matching.map((labels) => JSON.stringify(labels.slice(0, maxDepth)));
    return [...new Set(cut)].slice(offset, offset + limit).map((labels) => JSON.parse(labels) as string[]);
  }

  #askForNamespaces(asked: object, offset: number, limit: number): Promise<string[][]> {
    return pagesOf(limit, async (found, most) => {
      const body = { ...asked, ...this.#owner, limit: most, offset: offset + found };
      const { namespaces } = (await this.#send('POST', '/store/namespaces', body)) as {
        readonly namespaces: string[][];
      };
      return { entries: namespaces, isLast: namespaces.length < most };
    });
  }
}

/**
 * Collects at most `limit` entries of a list, which it reads page by page.
 * @param read returns the next page: it skips `found` entries and returns at most `most`
 */
async function pagesOf<Entry>(
  limit: number,
  read: (found: number, most: number) => Promise<{ readonly entries: readonly Entry[]; readonly isLast: boolean }>,
): Promise<Entry[]> {
  const all: Entry[] = [];
  while (all.length < limit) {
    const { entries, isLast } = await read(all.length, Math.min(PAGE, limit - all.length));
    all.push(...entries);
    if (isLast || entries.length === 0) break;
  }
  return all;
}

/**
 * Runs tasks in groups of 8, each after the one before, and returns their results in order. It rejects at the first
 * task that fails; later groups are then not run.
 */
async function allOf<Result>(tasks: readonly (() => Promise<Result>)[]): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < tasks.length; start += AT_ONCE)
    results.push(...(await Promise.all(tasks.slice(start, start + AT_ONCE).map((task) => task()))));
  return results;
}

function toItem({ namespace, key, value, created_at, updated_at }: SentItem): Item {
  return { namespace, key, value, createdAt: new Date(created_at), updatedAt: new Date(updated_at) };
}

function matches({ matchType, path }: MatchCondition, labels: readonly string[]): boolean {
  const start = matchType === 'prefix' ? 0 : labels.length - path.length;
  return path.length <= labels.length && path.every((wanted, at) => wanted === '*' || wanted === labels[start + at]);
}
