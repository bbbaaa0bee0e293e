import type { Page } from '../engine.ts';
import { foldName } from '../entities/modes.ts';
import { listEntities } from '../store/entities.ts';
import { compileFilter } from '../store/filter.ts';
import { numbersOf } from '../store/live-model.ts';
import { listMemories, sectorStats } from '../store/memories.ts';
import type { EmbeddingState, MemoryFilter } from '../types.ts';
import { describeReembed } from '../upkeep/reembed-status.ts';
import { answerQuery, explainAnswer } from './answer-query.ts';
import { readEntity, readJobs, readStats } from './counts.ts';
import type { ReadContext } from './read-context.ts';

/**
 * All reads that may take longer than a few tenths of a millisecond, and so run on reader threads where there are any.
 * A command gets its input and returns its result as plain data, since both may come from or go to another thread.
 */
export const READ_COMMANDS = {
  query: answerQuery,
  explain: explainAnswer,
  listMemories: (
    { open, clock }: ReadContext,
    { filter, page }: { readonly filter: MemoryFilter; readonly page: Page },
  ) => listMemories(open().store, filter, page, clock.now()),
  sectorStats: ({ open, clock }: ReadContext, _: Record<never, never>) => sectorStats(open().store, clock.now()),
  listEntities: (
    { open, clock }: ReadContext,
    { prefix, userId, page }: { readonly prefix: string; readonly userId: string | undefined; readonly page: Page },
  ) => {
    const filter = compileFilter({}, clock.now());
    return listEntities(open().store, { prefix: foldName(prefix), userId, filter }, page);
  },
  getEntity: readEntity,
  listJobs: readJobs,
  stats: (context: ReadContext, _: Record<never, never>) => readStats(context),
  reembedStatus: ({ open, clock }: ReadContext, embedding: EmbeddingState) => {
    const { store, configuredModels } = open();
    const target = configuredModels && numbersOf(configuredModels);
    return store.read(() => describeReembed(store, { ...embedding, configuredModels, target, now: clock.now() }));
  },
} as const;

type ReadCommands = typeof READ_COMMANDS;
export type ReadCommandName = keyof ReadCommands;
/** Input of a command, its second argument. */
export type ReadInput<N extends ReadCommandName> = Parameters<ReadCommands[N]>[1];
/** Result of a command, once it has run. */
export type ReadOutput<N extends ReadCommandName> = Awaited<ReturnType<ReadCommands[N]>>;
