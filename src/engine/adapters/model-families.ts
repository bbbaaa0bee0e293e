/**
 * What families of embedding models have in common: the prefixes that their texts need, and how the vectors of tokens
 * become the vector of a text. A model is recognised by its name, which may have any case, an owner, a size or a
 * format. All facts are from the models' cards.
 */
import type { EmbedOptions } from '../ports.ts';

/** How the vectors of a text's tokens become one vector: `mean` is their mean, `cls` the vector of the first token. */
export type Pooling = 'mean' | 'cls';

/** For each purpose (question or memory), a text that is put before each text; '' for none. */
export type Prefixes = Readonly<Record<EmbedOptions['purpose'], string>>;

/** Prefixes and pooling of the models of a family. */
export interface ModelFamily {
  readonly prefixes: Prefixes;
  /** How the vectors of tokens become one vector; null for an unknown family. */
  readonly pooling: Pooling | null;
}

/**
 * Returns the family of a model, or a family without prefixes and pooling if the model's name matches none. The vectors
 * of a question and of its answers are near each other only with the prefixes that the model was trained with, and
 * servers do not add prefixes. A change of the document prefix of a family would make another vector space under an
 * unchanged name.
 * @param model name of the model
 */
export function familyOf(model: string): ModelFamily {
  const name = model.toLowerCase();
  return FAMILIES.find(({ names }) => names.test(name)) ?? UNKNOWN;
}

const NO_PREFIXES: Prefixes = { document: '', query: '' };
const UNKNOWN: ModelFamily = { prefixes: NO_PREFIXES, pooling: null };

const PASSAGES_OF_A_SENTENCE: Prefixes = {
  document: '',
  query: 'Represent this sentence for searching relevant passages: ',
};

/** Known families. A model belongs to the first one whose `names` match its name in lower case. */
const FAMILIES: readonly (ModelFamily & { readonly names: RegExp })[] = [
  {
    names: /nomic-embed-text/,
    prefixes: { document: 'search_document: ', query: 'search_query: ' },
    pooling: 'mean',
  },
  {
    names: /(^|[/_-])(multilingual-)?e5-(small|base|large)(-v2)?\b(?!-instruct)/,
    prefixes: { document: 'passage: ', query: 'query: ' },
    pooling: 'mean',
  },
  { names: /\bbge-(small|base|large)-en|mxbai-embed-large/, prefixes: PASSAGES_OF_A_SENTENCE, pooling: 'cls' },
  { names: /\bbge-/, prefixes: NO_PREFIXES, pooling: 'cls' },
  { names: /\bgte-(multilingual|modernbert|(base|large)-en-v1\.5)/, prefixes: NO_PREFIXES, pooling: 'cls' },
  { names: /\bgte-(small|base|large)\b/, prefixes: NO_PREFIXES, pooling: 'mean' },
  { names: /minilm/, prefixes: NO_PREFIXES, pooling: 'mean' },
  {
    names: /embeddinggemma/,
    prefixes: { document: 'title: none | text: ', query: 'task: search result | query: ' },
    pooling: 'mean',
  },
];
