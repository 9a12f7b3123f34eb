declare const txBrand: unique symbol

/**
 * An open database transaction, opaque on purpose.
 *
 * It comes from `database.transaction(async tx => …)` and is passed on, as the last argument, to the
 * stores and services that are to take part. It is the only way to span plugins in one transaction.
 */
export interface Tx {
  readonly [txBrand]: true
}
