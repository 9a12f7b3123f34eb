/**
 * Stands where a text was cut before it was cleaned. Half a secret may stand beside it, which cannot be recognised any
 * more: `Secrets.clean` and `SecretScope.clean` also take out 64 characters of its line on either side of it.
 */
export const cutMark = ' … (cut)'

/** For texts that are not cleaned yet: not more than the first `max` characters, with `cutMark` behind them. */
export const cutText = (text: string, max: number): string =>
  text.length > max ? text.slice(0, max) + cutMark : text
