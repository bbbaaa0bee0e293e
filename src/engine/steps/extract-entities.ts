import { extractByModel } from '../entities/extract-by-model.ts';
import { extractGraph, statedEntities, type EntityGraph } from '../entities/extract.ts';
import type { EntityMode } from '../entities/modes.ts';
import { isEngineError } from '../errors.ts';
import type { LanguageModel } from '../ports.ts';
import type { MemoryRow } from '../store/memories.ts';
import { createYielder } from './create-yielder.ts';
import type { StepContext } from './step-context.ts';
import { textOfMemory } from './text-of-memory.ts';

type Source = Pick<MemoryRow, 'memoryNo' | 'title' | 'content' | 'entities'>;

/** Greatest number of calls of a language model that run at the same time for a batch. */
const MAX_CALLS = 4;

/**
 * Extracts the entities and relations that each memory states, by patterns, or by a language model with
 * `OM_ENTITY_EXTRACTION=llm`. If the model fails or sends an invalid answer, patterns are used instead. A model that is
 * down is not called again in this batch.
 * @returns graphs by `memoryNo`, without the memories that were not processed when `signal` was aborted; with
 *   `OM_ENTITY_MODE=none` all of them empty
 */
export async function extractEntities(
  context: Pick<StepContext, 'config' | 'languageModel'>,
  sources: readonly Source[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, EntityGraph>> {
  const { config, languageModel } = context;
  const mode = config.entityMode;
  if (mode === null) return new Map(sources.map(({ memoryNo }) => [memoryNo, { entities: [], relations: [] }]));
  if (config.OM_ENTITY_EXTRACTION === 'patterns' || languageModel === null) {
    const yieldTurn = createYielder();
    const graphs = new Map<number, EntityGraph>();
    for (const source of sources) {
      graphs.set(source.memoryNo, entitiesFromPatterns(source, mode));
      await yieldTurn();
    }
    return graphs;
  }
  return askModel(languageModel, { sources, mode, signal });
}

/** Extracts the entities and relations of a memory by patterns alone; entities that the caller stated are included. */
export function entitiesFromPatterns(source: Omit<Source, 'memoryNo'>, mode: EntityMode): EntityGraph {
  return extractGraph(textOfMemory(source), JSON.parse(source.entities) as string[], mode);
}

async function askModel(
  model: LanguageModel,
  { sources, mode, signal }: { sources: readonly Source[]; mode: EntityMode; signal: AbortSignal | undefined },
): Promise<ReadonlyMap<number, EntityGraph>> {
  const graphs = new Map<number, EntityGraph>();
  let isDown = false;
  const ask = async (source: Source): Promise<EntityGraph | null> => {
    if (isDown) return null;
    const stated = statedEntities(JSON.parse(source.entities) as string[], mode);
    return extractByModel(model, { text: textOfMemory(source), stated, mode }, signal).catch((error: unknown) => {
      isDown ||= !isEngineError(error, 'invalid');
      return null;
    });
  };
  const waiting = [...sources];
  const work = async () => {
    for (let source = waiting.shift(); source !== undefined && !signal?.aborted; source = waiting.shift()) {
      const graph = await ask(source);
      if (signal?.aborted) return;
      graphs.set(source.memoryNo, graph ?? entitiesFromPatterns(source, mode));
    }
  };
  await Promise.all(Array.from({ length: MAX_CALLS }, work));
  return graphs;
}
