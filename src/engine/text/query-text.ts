import { type AskingSentences, askingSentences } from './asking-sentences.ts';
import { type QueryTerms, queryTerms } from './index-text.ts';

/** The text of a query, taken apart once for all stages that read it. */
export interface QueryText {
  /** The text as it was asked. */
  readonly text: string;
  readonly terms: QueryTerms;
  readonly asking: AskingSentences;
  /** The terms of each sentence of `asking`, in the order of the sentences. */
  readonly askingTerms: readonly QueryTerms[];
}

/** Takes the text of a query apart. */
export function readQueryText(text: string): QueryText {
  const asking = askingSentences(text);
  return {
    text,
    terms: queryTerms(text, asking),
    asking,
    askingTerms: asking.sentences.map((sentence) => queryTerms(sentence)),
  };
}
