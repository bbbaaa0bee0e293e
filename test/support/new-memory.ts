import type { NewMemory } from '../../src/engine/types.ts';

export type TestMemory = Partial<NewMemory> & Pick<NewMemory, 'content'>;

/** Makes the data of a new memory, with defaults for all fields that `memory` leaves out. */
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
