import type { EmbedOptions } from '../ports.ts';

/**
 * Returns the prefixes that a model needs before a text, so that the vectors of a question and of its answers are near.
 * The model was trained with them, and servers do not add them. For a model that is not listed both prefixes are ''. A
 * change of a document's prefix here would make another vector space with the same name.
 * @param model name of the model as servers and folders have it, in any case, perhaps with an owner, a size or a format
 */
export function taskPrefixes(model: string): Readonly<Record<EmbedOptions['purpose'], string>> {
  const name = model.toLowerCase();
  return PREFIXES.find(({ names }) => names.test(name)) ?? NONE;
}

const NONE = { document: '', query: '' };

const PASSAGES_OF_A_SENTENCE = 'Represent this sentence for searching relevant passages: ';

/** Prefixes by name of the model, taken from the models' cards. */
const PREFIXES: readonly { readonly names: RegExp; readonly document: string; readonly query: string }[] = [
  { names: /nomic-embed-text/, document: 'search_document: ', query: 'search_query: ' },
  {
    names: /(^|[/_-])(multilingual-)?e5-(small|base|large)(-v2)?\b(?!-instruct)/,
    document: 'passage: ',
    query: 'query: ',
  },
  { names: /\bbge-(small|base|large)-en|mxbai-embed-large/, document: '', query: PASSAGES_OF_A_SENTENCE },
  { names: /embeddinggemma/, document: 'title: none | text: ', query: 'task: search result | query: ' },
];
