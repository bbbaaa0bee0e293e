import type { EmbedOptions } from '../ports.ts';

/**
 * What some models want before a text, so that a question comes near to its answers: they were trained with it, and servers that run a
 * model do not add it. Whoever changes a document's prefix here makes another vector space of the same name.
 * @param model as servers and folders call it: with an owner, a size or a format around it
 */
export function taskPrefixes(model: string): Readonly<Record<EmbedOptions['purpose'], string>> {
  const name = model.toLowerCase();
  return PREFIXES.find(({ names }) => names.test(name)) ?? NONE;
}

const NONE = { document: '', query: '' };

const PASSAGES_OF_A_SENTENCE = 'Represent this sentence for searching relevant passages: ';

/** From the models' own cards. */
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
