/**
 * Sentences that state a relation from A to B, by its type. `|` separates several forms of a word. A sentence ends with
 * the second of A and B; words before the first must be in the text, too. Articles, auxiliaries and a few adverbs may
 * occur anywhere (see `SKIPPED` in relations.ts), so that "A is now used by our B" needs no sentence of its own, while
 * "does not use" and "might use" match nothing.
 */
export const RELATION_PATTERNS: Readonly<Record<string, readonly string[]>> = {
  uses: [
    'A use|uses|used|using|utilizes|utilises|leverages|employs|adopted|adopts B',
    'A via|calls|stores|caches B',
    'A written|implemented|built|made|developed|coded|created in|with|using B',
    'A talks|connects|connected|writes|reads|sends|publishes to|from B',
    'A stored|persisted|saved|kept|cached in B',
    'A powered|backed|driven by B',
    'B used by|for|in|as|within A',
    'B powers|backs|handles|drives A',
    'use|uses|used|using|chose|choose|picked|selected|adopted|adopt B for|as|in|to A',
  ],
  depends_on: [
    'A depends|depend|depended|depending|relies|rely|relied|relying on|upon B',
    'A requires|require|required|requiring|needs|need B',
    'A based|built|runs|run|running|hosted|deployed on B',
    'A built|sits|runs on top of B',
    'B required|needed by|for A',
    'B dependency of A',
  ],
  implements: [
    'A implements|implement|implemented|implementing B',
    'A implementation of B',
    'A conforms|adheres to B',
    'A follows|supports B',
    'B implemented|supported|provided by A',
  ],
  extends: [
    'A extends|extend|extended|extending|wraps|wrapped|subclasses B',
    'A inherits|derives|derived|forked from B',
    'A fork|extension|subclass|superset|subset|wrapper of|for|around B',
    'A builds|improves on|upon B',
    'A wrapper around B',
    'B extended|wrapped by A',
  ],
  replaces: [
    'A replaces|replace|replaced|replacing|supersedes|superseded|succeeds B',
    'A instead of B',
    'A successor|replacement of|to|for B',
    'B replaced|superseded|succeeded by|with A',
    'moved|move|moving|migrated|migrate|migrating|switched|switch|switching from B to A',
    'changed|changing|ported|went|transitioned from B to A',
    'moved|move|moving|migrated|migrate|migrating|switched|switch|switching|transitioned to A from B',
    'replaced|replace|replacing B by|with A',
    'swapped|dropped|ditched|abandoned B for A',
    'dropped|deprecated|ditched|abandoned B in favour|favor of A',
  ],
  configures: [
    'A configures|configure|configured|configuring B',
    'A sets|set up B',
    'A configuration|config|settings|setup for|of B',
    'B configured|set|defined in|by|through|via|with|using A',
  ],
  related_to: [
    'A related|linked|tied|similar|compared|belongs to B',
    'A associated|integrated|integrates|works|work|worked|working|compatible|friends with B',
    'A works|work|worked|working|studies|studied|interns|teaches on|at|for|in B',
    'A maintains|leads|led|owns|manages|managed|wrote|created|built|founded|designed B',
    'A joined|knows|met|married|teaches|attends B',
    'A married|engaged to B',
    'A lives|lived|grew|moved|travelled|traveled|went in|up|to B',
    'A member|part|founder|author|creator|maintainer|owner|friend|sister|brother|mother|father|colleague of B',
    'A maintained|written|created|owned|designed|led|managed|founded|developed by B',
  ],
  calls: ['A calls|call|called|invokes|invoke|triggers|dispatches B', 'B called|invoked|triggered by|from A'],
  tests: ['A tests|test|covers|checks|verifies|exercises B', 'B tested|covered|verified by|in|with A'],
  cites: ['A cites|cite|cited|citing|references|quotes|mentions B', 'B cited|referenced|quoted by|in A'],
  contradicts_claim: [
    'A contradicts|contradict|contradicted|refutes|refuted|disputes|disputed|challenges|challenged|rejects|disproves B',
    'A disagrees|disagreed|conflicts|inconsistent with B',
    'B contradicted|refuted|disputed|challenged|rejected by A',
  ],
  supports_claim: [
    'A supports|support|supported|confirms|confirmed|replicates|replicated|corroborates|validates B',
    'A agrees|agreed|consistent with B',
    'B supported|confirmed|replicated|corroborated by A',
  ],
  outperforms: [
    'A outperforms|outperform|outperformed|beats|beat|exceeds|surpasses|surpassed B',
    'A better|faster than B',
    'A improves|improved over|on|upon B',
    'B outperformed|beaten|surpassed by A',
  ],
  evaluated_on: ['A evaluated|tested|trained|benchmarked|validated|measured|pretrained|fine-tuned on|with B'],
};
