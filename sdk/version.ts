/**
 * For SQL text, over the rows of a table: a text that is another one as soon as one of them is changed, comes or goes. With
 * `others`, what the answer has of joined tables: `select ${versionOfRows('n', 'u.name')} from note n join …`. An aggregate, to be read as
 * `text`; the order of the rows does not count.
 */
export const versionOfRows = (table: string, ...others: readonly string[]): string =>
  // PostgreSQL writes a changed row anew, in another place or by another transaction; 64 bits for each row.
  `count(*) || '.' || coalesce(sum(hash_record_extended(row(${[`${table}.ctid`, `${table}.xmin`, ...others].join(', ')}), 0)), 0)`
