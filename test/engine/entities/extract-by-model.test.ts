import { expect, test } from 'vitest';
import { extractByModel } from '../../../src/engine/entities/extract-by-model.ts';
import { extractGraph, statedEntities } from '../../../src/engine/entities/extract.ts';
import { MAX_ENTITIES } from '../../../src/engine/entities/named-things.ts';
import { builtInMode } from '../../../src/engine/entities/modes.ts';
import type { LanguageModel } from '../../../src/engine/ports.ts';

const mode = builtInMode('general')!;
const silent: LanguageModel = {
  provider: 'test',
  model: 'test',
  complete: async () => ({ text: '{"entities":[],"relations":[]}', inputTokens: 1, outputTokens: 1 }),
};

test('of many stated names as many are kept as patterns would keep, the same ones', async () => {
  const labels = Array.from({ length: 64 }, (_, place) => `Thing ${place} Q`);
  const stated = statedEntities(labels, mode);
  const graph = await extractByModel(silent, { text: 'x', stated: [stated[0]!, ...stated], mode });
  expect(graph!.entities).toHaveLength(MAX_ENTITIES);
  expect(graph!.entities).toEqual(extractGraph('x', labels, mode).entities);
});
