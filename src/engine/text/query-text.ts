import { type AskingSentences, askingSentences } from './asking-sentences.ts';
import { type QueryTerms, queryTerms } from './index-text.ts';
import { irregularFormsOf } from './irregular-words.ts';
import { isEnglish } from './query-language.ts';

/** The text of a query, taken apart once for all stages that read it. */
export interface QueryText {
  /** The text as it was asked. */
  readonly text: string;
  readonly terms: QueryTerms;
  /**
   * What tells in which language is asked: the sentences that ask, where it is known which do, else the whole text. The
   * other sentences of a message may be in any language.
   */
  readonly asked: string;
  readonly asking: AskingSentences;
  /** The terms of each sentence of `asking`, in the order of the sentences. */
  readonly askingTerms: readonly QueryTerms[];
  /** The terms of each sentence of `asking.mayAsk`, in their order. */
  readonly mayAskTerms: readonly QueryTerms[];
}

/** Takes the text of a query apart. */
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

/** Adds the irregular forms of the words of an English query. */
function withForms(terms: QueryTerms): QueryTerms {
  const forms = terms.words.flatMap((word): [string, readonly string[]][] => {
    const others = irregularFormsOf(word);
    return others.length === 0 ? [] : [[word, others]];
  });
  return forms.length === 0 ? terms : { ...terms, forms: new Map(forms) };
}
