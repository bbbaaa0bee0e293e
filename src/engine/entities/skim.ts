import { gistOf } from '../text/gist.ts';
import type { Memory } from '../types.ts';
import { entitiesOf } from './named-things.ts';

/**
 * Gist and entities that nobody stated are read off the text when somebody asks for them, not stored: they follow from it, and the
 * word index holds only what was said.
 */
const SKIMMED_CHARACTERS = 2_000;

/** What was stated, else what its text says; '' for a blank text. */
export function shownGist({ gist, title, content }: Pick<Memory, 'gist' | 'title' | 'content'>): string {
  return gist === '' ? gistOf(content.slice(0, SKIMMED_CHARACTERS), title) : gist;
}

/** What was stated, else the names in its text. */
export function shownEntities({
  entities,
  title,
  content,
}: Pick<Memory, 'entities' | 'title' | 'content'>): readonly string[] {
  return entities.length === 0 ? entitiesOf(`${title}\n${content.slice(0, SKIMMED_CHARACTERS)}`.trim()) : entities;
}
