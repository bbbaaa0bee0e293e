import { quote } from '../text/fence.ts';

/** What was said, and when it was said or happened. */
export interface Statement {
  readonly text: string;
  /** Unix ms */
  readonly saidAt: number;
}

/** @param most characters of the text that are quoted */
export function quoteStatement(fence: string, name: string, { text, saidAt }: Statement, most: number): string {
  return quote(fence, `${name} of ${new Date(saidAt).toISOString().slice(0, 10)}`, text.slice(0, most));
}
