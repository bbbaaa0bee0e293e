import type { MemoryRow } from '../store/memories.ts';

/** Joins the title and the content of a memory into the text that models read and patterns are searched in. */
export function textOfMemory({ title, content }: Pick<MemoryRow, 'title' | 'content'>): string {
  return title === '' ? content : `${title}\n${content}`;
}
