import type { Tenant } from '../engine.ts';
import { observeStages } from '../metrics.ts';
import { requireReranker } from '../retrieve/options.ts';
import { nextTurn } from '../turns.ts';
import type { MemoryQuery, QueryResult } from '../types.ts';
import { requireNoLoss } from './tenant-evals.ts';
import { defaultsSetting, readRetrievalDefaults } from '../control/retrieval-defaults.ts';
import { screenRecall } from './screen-recall.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

type QueryMethods = Pick<Tenant, 'query' | 'explain' | 'retrievalDefaults' | 'putRetrievalDefaults'>;

/** Makes the methods by which a tenant answers queries, and returns and sets its defaults for them. */
export function createQueryMethods(options: TenantOptions): QueryMethods {
  const { path, metrics, control, changeControl, readers, writer } = options;
  const guard = guardOf(options);
  const defaults = () => readRetrievalDefaults(control, options.id);
  return {
    query: runQuery,
    async explain(query, memoryId, signal) {
      const explanation = await readers.read(path, 'explain', { query, memoryId, defaults: defaults() }, signal);
      countWorkEnds('explain', explanation);
      return explanation;
    },
    retrievalDefaults: async () => defaults(),
    async putRetrievalDefaults(defaults, { force = false, signal, caller = null } = {}) {
      requireReranker(defaults, options.languageModel);
      if (!force) await requireNoLoss(options, defaults, signal);
      // The record comes first: a setting that was changed is never without one.
      await writer.write(path, 'recordAction', { action: 'setting.change', detail: { name: 'retrieval' } });
      // The writer may answer many calls at once, and this thread waits for each commit to a file.
      await nextTurn();
      await changeControl(caller, 'putSetting', options.id, ...defaultsSetting(defaults));
    },
  };

  function countWorkEnds(read: 'query' | 'explain', { degradedReasons }: Pick<QueryResult, 'degradedReasons'>): void {
    for (const reason of degradedReasons) if (reason !== 'vectors') metrics.workEnds.inc({ read, reason });
  }

  async function runQuery(query: MemoryQuery, signal?: AbortSignal): Promise<QueryResult> {
    const started = performance.now();
    const answer = await readers.read(path, 'query', { query, defaults: defaults() }, signal);
    const { result, profile, stages, effects, later } = answer;
    if (effects !== null) options.recalls.add(path, effects);
    if (later !== null)
      options.recalls.log(
        path,
        later.then((recall) => screenRecall(guard, recall)),
      );
    if (result.degradedReasons.includes('vectors')) metrics.degradedQueries.inc();
    countWorkEnds('query', result);
    observeStages(metrics, stages);
    metrics.queryDuration.observe((performance.now() - started) / 1000);
    metrics.queriesByProfile.inc({ profile });
    metrics.queryHits.observe(result.hits.length);
    if (result.hits.length === 0) metrics.emptyQueries.inc();
    return result;
  }
}
