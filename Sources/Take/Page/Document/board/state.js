// State that the modules of the board share.

/**
 * The groups and lanes on the board.
 * @type {{groups: LaneGroup[], lanes: Lane[], marked: Lane | null}}
 */
export const board = {
  groups: [],
  /** Lanes that are not folded away, from top to bottom. */
  lanes: [],
  /** The lane under the pointer, or the one named by the address. */
  marked: null,
};

/**
 * The elements of the board, by their names.
 * @type {Record<string, any>}
 */
export const parts = {};

/** The user's choices, which are kept when the lanes are rebuilt. */
export const kept = {
  folded: new Set(), open: new Set(), order: [], peer: 0, words: "",
  /** Whether all lanes are unfolded and drawn, for printing. */
  isAll: false,
};
