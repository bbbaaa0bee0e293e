import { DAY_MS } from '../dynamics.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { compareWithNow, within } from '../readers/recalls.ts';
import type { MemoryQuery, RecallRecord, Replay, ReplayOptions } from '../types.ts';
import { quotaOf } from './quota-of.ts';
import { screenHead } from './screen-recall.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

type RecallMethods = Pick<Tenant, 'listRecalls' | 'getRecall' | 'replayRecall' | 'giveFeedback'>;

/** Makes the methods by which a tenant returns its recall log, runs logged queries again, and takes feedback. */
export function createRecallMethods(options: TenantOptions): RecallMethods {
  const { path, config, clock, readers, writer } = options;
  const guard = guardOf(options);

  /**
   * Returns a logged recall (answered query), with its text as the present privacy policy allows.
   * @throws EngineError `not_found` for an unknown recall, or one older than `OM_RECALL_DAYS`
   */
  async function getRecall(id: string): Promise<RecallRecord> {
    await options.recalls.flush(options.path);
    const recall = await readers.read(path, 'readRecall', { id });
    // The purge runs now and then; a recall is gone when its time is over.
    if (recall.at < clock.now() - config.OM_RECALL_DAYS * DAY_MS)
      throw new EngineError('not_found', 'no recall with this id is kept');
    return screenHead(guard, recall);
  }

  async function replayRecall(
    id: string,
    { state, changes, only }: ReplayOptions,
    signal?: AbortSignal,
  ): Promise<Replay> {
    const recall = await getRecall(id);
    if (state === 'then') {
      const { question } = recall;
      return { ...(await readers.read(path, 'replayLogged', { id, changes, only }, signal)), question };
    }
    const query = queryOfToday(recall, changes);
    const { result, later } = await readers.read(path, 'query', { query, defaults: recall.defaults }, signal);
    return compareWithNow(within(recall, only), result, await later);
  }

  return {
    async listRecalls(listing) {
      await options.recalls.flush(options.path);
      const { items, next } = await readers.read(path, 'readRecalls', listing);
      const since = clock.now() - config.OM_RECALL_DAYS * DAY_MS;
      const kept = items.filter(({ at }) => at >= since);
      return { items: await Promise.all(kept.map((head) => screenHead(guard, head))), next };
    },
    getRecall,
    replayRecall,
    async giveFeedback(id, verdict, memoryIds) {
      await getRecall(id);
      return [...(await writer.write(path, 'giveFeedback', { id, verdict, memoryIds, quota: quotaOf(options) }))];
    },
  };
}

/**
 * Makes a query from a logged recall (answered query) and changes to it, to be run on the present data. If the changes
 * name another profile, the logged weights are left out, since that profile reads other weights.
 * @throws EngineError `conflict` if the text of the query was withheld and the changes give none
 */
function queryOfToday({ question, filter, request }: RecallRecord, changes: ReplayOptions['changes']): MemoryQuery {
  const query = changes.query ?? question;
  if (query === null) {
    throw new EngineError('conflict', 'the question was not kept: give query to ask now');
  }
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const { weights, ...rest } = request;
  const isOtherProfile = changes.profile !== undefined && changes.profile !== request.profile;
  return { ...rest, ...(isOtherProfile ? {} : { weights }), filter, ...given, query, reinforce: false };
}
