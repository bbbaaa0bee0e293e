import type { NewMemory } from './types.ts';

const UNSAID: Omit<NewMemory, 'content'> = {
  ...{ userId: '', sessionId: '', type: null, title: '', gist: '', entities: null, externalId: null },
  ...{ tags: [], files: [], metadata: {}, importance: null, confidence: 1 },
  ...{ eventTime: null, validFrom: null, validTo: null, expiresAt: null },
};

/** Completes a memory that a program is about to add: a field that is not given says nothing of the memory. */
export function newMemory(content: string, fields: Partial<Omit<NewMemory, 'content'>> = {}): NewMemory {
  return { ...UNSAID, ...fields, content };
}
