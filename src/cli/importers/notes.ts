/** The format of folders of Markdown notes: Obsidian and basic-memory. */
import type { ImportFormat } from './format.ts';

export const notes: ImportFormat = {
  name: 'notes',
  detect: ({ names }) => names.some((name) => name.endsWith('.md')),
  async *lines(context) {
    // It takes the front door of the engine and a parser of YAML, 10 MB that an import of anything else does without.
    yield* (await import('./read-notes.ts')).readNotes(context);
  },
};
