/**
 * Makes an element. What is shown is always text, never HTML.
 * @param {string} name `tag.class.class`
 * @param {Record<string, string>} attributes
 * @param {...(Node | string | null | undefined)} children
 */
export function element(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split('.')
  const made = document.createElement(tag)
  if (classes.length > 0) made.className = classes.join(' ')
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children.filter(child => child !== null && child !== undefined))
  return made
}

/** Text in which `words between backticks` are code. */
export function prose(text) {
  return text
    .split(/(`[^`]+`)/)
    .map(part => (part.startsWith('`') ? element('code', {}, part.slice(1, -1)) : part))
}

/** Paragraphs and lists (`- `), in which `words between backticks` are code. */
export function markdown(text) {
  const nodes = []
  for (const paragraph of text.split(/\n\n+/)) {
    const lines = paragraph.split('\n').filter(line => line !== '')
    const items = lines.filter(line => line.startsWith('- '))
    const words = lines.filter(line => !line.startsWith('- '))
    if (words.length > 0) nodes.push(element('p', {}, ...prose(words.join(' '))))
    if (items.length > 0)
      nodes.push(element('ul', {}, ...items.map(item => element('li', {}, ...prose(item.slice(2))))))
  }
  return nodes
}

/** A block of code with a button that copies it. */
export function codeBlock(text) {
  const button = element('button.copy', { type: 'button' }, 'Copy')
  button.addEventListener('click', () => {
    navigator.clipboard?.writeText(text).then(
      () => {
        button.textContent = 'Copied'
      },
      () => {
        button.textContent = 'Select and copy'
      }
    )
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 2000)
  })
  return element('div.block', {}, element('pre', {}, element('code', {}, text)), button)
}
