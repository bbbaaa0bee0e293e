import { extractByModel } from '../entities/extract-by-model.ts';
import { extractGraph, statedEntities, type EntityGraph } from '../entities/extract.ts';
import type { EntityMode } from '../entities/modes.ts';
import { isEngineError } from '../errors.ts';
import type { LanguageModel } from '../ports.ts';
import type { MemoryRow } from '../store/memories.ts';
import { createBreather } from './create-breather.ts';
import type { StepContext } from './step-context.ts';

type Source = Pick<MemoryRow, 'seq' | 'title' | 'content' | 'entities'>;

/** Calls of a language model in flight. */
const CALLS_MOST = 4;

/**
 * What each memory says about names, by its number: from patterns, or from a language model where the settings ask for
 * one. A model that fails or answers something else costs nothing but its answer, and one that is down is not asked
 * again in this batch.
 * @returns without the memories that were not looked at when `signal` was aborted; all of them without where no graph
 * is built
 */
export async function extractEntities(
  context: Pick<StepContext, 'config' | 'languageModel'>,
  sources: readonly Source[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, EntityGraph>> {
  const { config, languageModel } = context;
  const mode = config.entityMode;
  if (mode === null) return new Map(sources.map(({ seq }) => [seq, { entities: [], relations: [] }]));
  if (config.OM_ENTITY_EXTRACTION === 'patterns' || languageModel === null) {
    const breathe = createBreather();
    const graphs = new Map<number, EntityGraph>();
    for (const source of sources) {
      graphs.set(source.seq, entitiesFromPatterns(source, mode));
      await breathe();
    }
    return graphs;
  }
  return askModel(languageModel, { sources, mode, signal });
}

export function entitiesFromPatterns(source: Omit<Source, 'seq'>, mode: EntityMode): EntityGraph {
  return extractGraph(textOf(source), JSON.parse(source.entities) as string[], mode);
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
    return extractByModel(model, { text: textOf(source), stated, mode }, signal).catch((error: unknown) => {
      isDown ||= !isEngineError(error, 'invalid');
      return null;
    });
  };
  const waiting = [...sources];
  const work = async () => {
    for (let source = waiting.shift(); source !== undefined && !signal?.aborted; source = waiting.shift()) {
      const graph = await ask(source);
      if (signal?.aborted) return;
      graphs.set(source.seq, graph ?? entitiesFromPatterns(source, mode));
    }
  };
  await Promise.all(Array.from({ length: CALLS_MOST }, work));
  return graphs;
}

function textOf({ title, content }: Omit<Source, 'seq' | 'entities'>): string {
  return title === '' ? content : `${title}\n${content}`;
}
