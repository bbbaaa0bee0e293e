/**
 * The gist and the entities of a memory for callers. If none were stated, they are computed from the text at each call
 * and not stored, so that the word index holds only what the caller stored.
 */

import { gistOf } from '../text/gist.ts';
import type { Memory } from '../types.ts';
import { entitiesOf } from './named-things.ts';

/** Length of the beginning of a text from which its gist and its entities are computed, in UTF-16 code units. */
const SKIMMED_CHARACTERS = 2_000;

/** Returns the stated gist of a memory, else one computed from its text; '' for a blank text. */
export function shownGist({ gist, title, content }: Pick<Memory, 'gist' | 'title' | 'content'>): string {
  return gist === '' ? gistOf(content.slice(0, SKIMMED_CHARACTERS), title) : gist;
}

/**
 * Returns the stated entities of a memory; if none were stated, the names that `entitiesOf` finds in its title and
 * text.
 */
export function shownEntities({
  entities,
  title,
  content,
}: Pick<Memory, 'entities' | 'title' | 'content'>): readonly string[] {
  return entities.length === 0 ? entitiesOf(`${title}\n${content.slice(0, SKIMMED_CHARACTERS)}`.trim()) : entities;
}
