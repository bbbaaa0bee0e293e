import { mayHoldRows } from '../control/place-of.ts';
import type { Tenant } from '../engine.ts';
import type { PrivacyGuard } from '../privacy/guard.ts';
import { screenStandingQuery } from '../privacy/standing-texts.ts';
import { hasNeighbours } from '../readers/standing-vectors.ts';
import { distinctModels } from '../store/live-model.ts';
import type { DueMemory } from '../store/standing.ts';
import type { StandingPart } from '../store/erase-standing.ts';
import type {
  ErasedStanding,
  Json,
  Listed,
  NewStandingQuery,
  Standing,
  StandingOwner,
  StandingPage,
  StandingQuery,
  StandingRest,
} from '../types.ts';
import { readRetrievalDefaults } from '../control/retrieval-defaults.ts';
import { createDeliveries } from './deliver-webhooks.ts';
import { quotaOf } from './quota-of.ts';
import type { TenantOptions } from './tenant-options.ts';
import type { TenantState } from './tenant-state.ts';
import { guardOf } from './tenant-privacy.ts';

/** Greatest number of new memories that one claim takes for comparison with the standing queries. */
const COMPARED_AT_ONCE = 64;
/** Greatest number of events that one commit turns into deliveries of webhooks. */
const HANDED_AT_ONCE = 500;
/** Greatest number of standing queries without a vector that are embedded before one comparison. */
const EMBEDDED_AT_ONCE = 256;
/** Greatest number of answers or deliveries that one commit deletes or changes. */
const ROWS_AT_ONCE = 1_000;
/** Greatest number of standing queries, and of webhooks, that one commit of a delete removes. */
const ERASED_AT_ONCE = 1_000;
/** Time after a failure of the provider during which it is not called for vectors of standing queries (ms). */
const EMBED_AGAIN_MS = 30_000;

/** Makes the methods of standing queries and webhooks. */
export function createStandingMethods(options: TenantOptions, state: TenantState): Pick<Tenant, keyof Standing> {
  const { id: tenantId, path, config, readers, writer, tended } = options;
  const guard = guardOf(options);
  const makeWork = () => ({ deliver: createDeliveries(options), compareDue: createComparison(options) });
  /**
   * Makes the writer open the file. That begins the change feed in a file to which nothing was written since the feed
   * was switched on.
   */
  const ensureFeed = async () => {
    if (config.OM_EVENTS) await writer.write(path, 'open', {});
  };
  /**
   * Adds the tenant to those whose standing queries and webhooks are looked after regularly, and returns `stored`. It
   * is called after the write: an earlier check would find no standing query and remove the tenant again.
   */
  const tendFromNow = <T>(stored: T): T => {
    tended.add(tenantId);
    return stored;
  };

  return {
    async createStandingQuery(query) {
      if (query.webhookUrl !== undefined) options.webhookSender.check(query.webhookUrl);
      await ensureFeed();
      const screened = await screenQuery(guard, query);
      return tendFromNow(await writer.write(path, 'createStandingQuery', { ...screened, quota: quotaOf(options) }));
    },
    listStandingQueries: (page) => readQueries(options, page),
    getStandingQuery: (id) => readers.read(path, 'getStandingQuery', { id }),
    listStandingAnswers: (id, page) => readers.read(path, 'listStandingAnswers', { id, page }),
    async deleteStandingQuery(id) {
      await deleteStandingRows(options, { query: id });
      await writer.write(path, 'deleteStandingQuery', { id });
    },
    async createWebhook(webhook) {
      options.webhookSender.check(webhook.url);
      await ensureFeed();
      return tendFromNow(await writer.write(path, 'createWebhook', { ...webhook, quota: quotaOf(options) }));
    },
    listWebhooks: (page) => readers.read(path, 'listWebhooks', page),
    getWebhook: (id) => readers.read(path, 'getWebhook', { id }),
    async deleteWebhook(id) {
      await deleteStandingRows(options, { webhook: id });
      await writer.write(path, 'deleteWebhook', { id });
    },
    listDeliveries: (id, page) => readers.read(path, 'listDeliveries', { id, page }),
    async retryDeliveries(id) {
      for (let [deliveries, after] = [0, 0]; ;) {
        // By their numbers, so that what is dead again meanwhile stays so.
        const { retried, last } = await writer.write(path, 'retryDeliveries', { id, after, limit: ROWS_AT_ONCE });
        deliveries += retried;
        if (retried < ROWS_AT_ONCE) return deliveries;
        after = last;
      }
    },

    async tendStanding(signal) {
      if (!mayHoldRows(config, path) || !(await readers.readFew(path, 'hasStanding', {}))) return 'absent';
      const { deliver, compareDue } = state.standingWork(makeWork);
      const compared = await compareDue();
      const handed = await handEvents(options);
      return (await deliver(signal)) || compared || handed ? 'busy' : 'idle';
    },
    standingDueAt: () => readers.readFew(path, 'standingDueAt', {}),
  };
}

/** Reads a page of standing queries in slices, of which this thread receives one at a time. */
async function readQueries(
  { path, readers }: Pick<TenantOptions, 'path' | 'readers'>,
  page: StandingPage,
): Promise<Listed<StandingQuery>> {
  const items: StandingQuery[] = [];
  let total = 0;
  for (let before: number | null | undefined; before !== null;) {
    const left = { ...page, limit: page.limit - items.length, before };
    const slice = await readers.read(path, 'listStandingQueries', left);
    items.push(...slice.items);
    total += slice.total;
    before = slice.next;
  }
  return { items, total };
}

/**
 * Turns the next events, at most 500, into deliveries to the webhooks that follow them. Resolves to whether any
 * delivery was made or dropped. If the tenant takes as much disk space as it may, its events wait in the feed until
 * there is room: one small memory may have very many answers and deliveries.
 */
async function handEvents(options: TenantOptions): Promise<boolean> {
  const { path, metrics, readers, writer } = options;
  if (!(await readers.readFew(path, 'mayHandEvents', { quota: quotaOf(options) }))) return false;
  const { made, dropped } = await writer.write(path, 'handEvents', { limit: HANDED_AT_ONCE });
  metrics.webhookDrops.inc(dropped);
  return made + dropped > 0;
}

/**
 * Deletes the answers and deliveries of the standing queries or webhooks that `part` names, which are deleted
 * afterwards. It does so in short writes: one long write would hold up the writes of all tenants.
 */
async function deleteStandingRows(
  { path, writer }: Pick<TenantOptions, 'path' | 'writer'>,
  part: StandingPart,
): Promise<void> {
  while ((await writer.write(path, 'deleteStandingRows', { part, limit: ROWS_AT_ONCE })) >= ROWS_AT_ONCE);
}

/**
 * Erases the standing queries and webhooks of users or of keys, with their answers and deliveries, in commits of at
 * most 1,000 each.
 * @returns the numbers of standing queries and of webhooks that were erased
 */
export async function eraseStandingOf(
  { path, writer }: Pick<TenantOptions, 'path' | 'writer'>,
  owner: StandingOwner,
): Promise<ErasedStanding> {
  await deleteStandingRows({ path, writer }, owner);
  let [standingQueries, webhooks] = [0, 0];
  for (let isDone = false; !isDone;) {
    const slice = await writer.write(path, 'eraseStanding', { owner, limit: ERASED_AT_ONCE });
    standingQueries += slice.standingQueries;
    webhooks += slice.webhooks;
    isDone = slice.isDone;
  }
  return { standingQueries, webhooks };
}

async function screenQuery(guard: PrivacyGuard, query: NewStandingQuery): Promise<NewStandingQuery> {
  if (!guard.isOn()) return query;
  const screen = async (value: Json) => (await guard.fields({ value })).fields.value;
  return { ...query, ...(await screenStandingQuery(query, screen)) };
}

/**
 * A comparison with standing queries that was begun: the memories that were claimed for it, and what is still to be
 * compared.
 */
interface Comparison {
  readonly due: readonly DueMemory[];
  readonly rest: StandingRest;
}

/**
 * Makes the function that compares claimed memories with the standing queries, as much as one read can. The next call
 * continues with the rest. It resolves to false if no memory waits, or none may be compared since the tenant is full,
 * and no other call is running. If it fails, the memories wait until their claim ends.
 */
function createComparison(options: TenantOptions): () => Promise<boolean> {
  const { id: tenantId, path, control, writer, readers, metrics } = options;
  const embedQueries = createStandingEmbedder(options);
  const begun: Comparison[] = [];
  /** Number of calls that are running: the memories that they compare are not done yet. */
  let atWork = 0;

  /** Tells whether something waits to be compared, and there is room to store what is found. */
  async function hasRoom(): Promise<boolean> {
    const quota = quotaOf(options);
    if (begun.length === 0) return readers.readFew(path, 'mayCompare', { quota });
    return !(await readers.readFew(path, 'hasReachedMb', { quota }));
  }

  async function claim(): Promise<Comparison | undefined> {
    const due = await writer.write(path, 'claimDue', { limit: COMPARED_AT_ONCE });
    if (due.length === 0) return undefined;
    await embedQueries();
    return { due, rest: { memoryNos: [...new Set(due.map(({ memoryNo }) => memoryNo))], afterQuery: 0 } };
  }

  async function compare({ due, rest: asked }: Comparison): Promise<void> {
    const defaults = readRetrievalDefaults(control, tenantId);
    const { matches, rest } = await readers.read(path, 'compareStanding', { ...asked, defaults });
    const left = new Set(rest?.memoryNos);
    const dueNos = due.filter(({ memoryNo }) => !left.has(memoryNo)).map(({ dueNo }) => dueNo);
    metrics.standingAnswers.inc(await writer.write(path, 'noteAnswers', { dueNos, matches }));
    if (rest !== null) begun.push({ due: due.filter(({ memoryNo }) => left.has(memoryNo)), rest });
  }

  return async () => {
    atWork += 1;
    try {
      const next = (await hasRoom()) ? (begun.shift() ?? (await claim())) : undefined;
      if (next !== undefined) await compare(next);
      return next !== undefined || atWork > 1;
    } finally {
      atWork -= 1;
    }
  };
}

/**
 * Makes the function that embeds standing queries that have no vector of the live model (the one in use; with several,
 * the first), at most 256 per call. It does nothing for the offline embedder, whose vectors say no more than words. If
 * the provider fails, they are compared by their words alone, and the provider is called again after 30 seconds.
 */
function createStandingEmbedder({
  path,
  clock,
  open,
  querySourceOf,
  readers,
  writer,
}: TenantOptions): () => Promise<void> {
  let failedAt = -Infinity;
  return async () => {
    const { liveModels } = open();
    const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
    const since = clock.now() - failedAt;
    // A clock that was set back does not prolong the pause.
    const isPaused = since >= 0 && since < EMBED_AGAIN_MS;
    if (live === undefined || !hasNeighbours(live) || isPaused) return;
    const missing = { modelNo: live.modelNo, limit: EMBEDDED_AT_ONCE };
    const waiting = await readers.read(path, 'listUnembeddedQueries', missing);
    const querySource = waiting.length === 0 ? null : querySourceOf(live);
    if (querySource === null) return;
    const embedded = await Promise.all(
      waiting.map(async ({ queryNo, query }) => ({ queryNo, embedding: await querySource.embedQuery(query) })),
    );
    const vectors = embedded.flatMap(({ queryNo, embedding }) => (embedding === null ? [] : { queryNo, embedding }));
    if (vectors.length < waiting.length) failedAt = clock.now();
    if (vectors.length > 0) await writer.write(path, 'putStandingVectors', { modelNo: live.modelNo, vectors });
  };
}
