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

/** Most calls of a language model that are in flight at once for a batch. */
const MAX_CALLS = 4;

/**
 * Extracts the names and relations that each memory states, by patterns, or by a language model where the settings ask
 * for one. Where the model fails or answers something else, patterns stand in. A model that is down is not asked again
 * in this batch.
 * @returns graphs by memory number, without the memories that were not looked at when `signal` was aborted; all of them
 *   empty where the settings ask for no graph
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

/** Extracts the names and relations of a memory by patterns alone; names that the caller stated are included. */
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
