import type { NewMemory } from './types.ts';

const UNSAID: Omit<NewMemory, 'content'> = {
  userId: '',
  sessionId: '',
  type: null,
  title: '',
  gist: '',
  entities: null,
  externalId: null,
  tags: [],
  files: [],
  metadata: {},
  importance: null,
  confidence: 1,
  eventTime: null,
  validFrom: null,
  validTo: null,
  expiresAt: null,
};

/**
 * Makes the data of a memory to add from its text. A field that is not given is empty ('', null, an empty list or
 * object), except that `confidence` is 1.
 */
export function newMemory(content: string, fields: Partial<Omit<NewMemory, 'content'>> = {}): NewMemory {
  return { ...UNSAID, ...fields, content };
}
