/**
 * The gist and the entities of a memory as they are shown. If nobody stated them, they are read off the text when
 * somebody asks for them. They are not stored: they follow from the text, and the word index holds only what was said.
 */

import { gistOf } from '../text/gist.ts';
import type { Memory } from '../types.ts';
import { entitiesOf } from './named-things.ts';

/** First characters of a text that are read for its gist and its entities (UTF-16 code units). */
const SKIMMED_CHARACTERS = 2_000;

/** Returns the stated gist, else one read off the text; '' for a blank text. */
export function shownGist({ gist, title, content }: Pick<Memory, 'gist' | 'title' | 'content'>): string {
  return gist === '' ? gistOf(content.slice(0, SKIMMED_CHARACTERS), title) : gist;
}

/** Returns the stated entities; if none were stated, the names that `entitiesOf` finds in the title and the text. */
export function shownEntities({
  entities,
  title,
  content,
}: Pick<Memory, 'entities' | 'title' | 'content'>): readonly string[] {
  return entities.length === 0 ? entitiesOf(`${title}\n${content.slice(0, SKIMMED_CHARACTERS)}`.trim()) : entities;
}
