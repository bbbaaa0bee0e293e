import type { NewMemory } from '../../src/engine/types.ts';

export type TestMemory = Partial<NewMemory> & Pick<NewMemory, 'content'>;

/** What an add holds when the caller says no more than this. */
export function newMemory(memory: TestMemory): NewMemory {
  return {
    userId: '',
    sessionId: '',
    tags: [],
    files: [],
    metadata: {},
    type: null,
    title: '',
    gist: '',
    entities: null,
    eventTime: null,
    validFrom: null,
    validTo: null,
    expiresAt: null,
    importance: null,
    confidence: 1,
    externalId: null,
    ...memory,
  };
}
