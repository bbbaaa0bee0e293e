import { type AskingSentences, askingSentences } from './asking-sentences.ts';
import { type QueryTerms, queryTerms } from './index-text.ts';
import { irregularFormsOf } from './irregular-words.ts';
import { isEnglish } from './query-language.ts';

/** The text of a query, split once into terms and sentences for all stages of the search. */
export interface QueryText {
  /** The whole text of the query. */
  readonly text: string;
  readonly terms: QueryTerms;
  /**
   * The part of the text from which the language of the question is recognised: the sentences that ask
   * (`asking.sentences`), if these are known, else the whole text. The other sentences of a message may be in another
   * language.
   */
  readonly asked: string;
  readonly asking: AskingSentences;
  /** The terms of each of `asking.sentences`, in their order. */
  readonly askingTerms: readonly QueryTerms[];
  /** The terms of each of `asking.mayAsk`, in their order. */
  readonly mayAskTerms: readonly QueryTerms[];
}

/**
 * Splits the text of a query into terms and sentences. If the part from which the language is recognised is English,
 * the terms also get the irregular forms of their words (`QueryTerms.forms`).
 */
export function readQueryText(text: string): QueryText {
  const asking = askingSentences(text);
  const asked = asking.areKnown && asking.sentences.length > 0 ? asking.sentences.join('\n') : text;
  const complete = isEnglish(asked) ? withForms : (terms: QueryTerms) => terms;
  return {
    text,
    asked,
    terms: complete(queryTerms(text, asking)),
    asking,
    askingTerms: asking.sentences.map((sentence) => complete(queryTerms(sentence))),
    mayAskTerms: asking.mayAsk.map((sentence) => complete(queryTerms(sentence))),
  };
}

/** Adds the irregular forms of English words to the terms of a query. */
function withForms(terms: QueryTerms): QueryTerms {
  const forms = terms.words.flatMap((word): [string, readonly string[]][] => {
    const others = irregularFormsOf(word);
    return others.length === 0 ? [] : [[word, others]];
  });
  return forms.length === 0 ? terms : { ...terms, forms: new Map(forms) };
}
