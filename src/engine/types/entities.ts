/** A name that memories mention, such as that of a person or a library, with the number of memories that mention it. */
export interface EntitySummary {
  /**
   * Name in folded form (lower case, without accents), by which it is looked up; for a well-known name its first
   * spelling in the lexicon, such as `kubernetes` for `k8s`.
   */
  readonly name: string;
  /**
   * Spelling of the name in the first memory that still mentions it; of the spellings of several users, the first in
   * alphabetical order.
   */
  readonly label: string;
  /**
   * Type of the named thing, one of those of the setting `OM_ENTITY_MODE`; `other` if no memory gives it another type.
   */
  readonly type: string;
  /**
   * Number of memories that mention the name and that a query could find. For a name with very many mentions, only the
   * first ones are checked, and the rest count without a check; for a caller bound to tags, all are checked.
   */
  readonly mentions: number;
}

/** Names that memories mention. */
export interface EntityList {
  readonly items: readonly EntitySummary[];
  /** Whether names may be missing and counts too low, since the work budget of one request ended. */
  readonly isCut: boolean;
}

/** A name with its relations to other names and the memories that mention it. */
export interface EntityDetails extends EntitySummary {
  /** Relations to other names, those that most memories state first; at most 100. */
  readonly relations: readonly {
    /** Type of the relation, such as `uses`. */
    readonly type: string;
    /** `out` if this name is the relation's source, else `in`. */
    readonly direction: 'out' | 'in';
    /** Folded name at the other end of the relation. */
    readonly name: string;
    /** Spelling of that other name in a memory that states the relation; of several, the first by alphabet. */
    readonly label: string;
    /** Number of memories that state the relation. */
    readonly memories: number;
  }[];
  /** Ids of the memories that mention the name, those added last first; at most 100. */
  readonly memoryIds: readonly string[];
  /** Whether relations or memories may be missing or the count too low, since the work budget of one request ended. */
  readonly isCut: boolean;
}
