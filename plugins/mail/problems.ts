import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  off: [
    503,
    'E_MAIL_OFF',
    'this platform sends no mail',
    'set SMTP_HOST to the name of a mail server and start it again'
  ],
  recipient: [400, 'E_MAIL_RECIPIENT', 'the recipient is not an email address'],
  link: [500, 'E_MAIL_LINK', 'a link in a mail must be an http or https address']
})
