//! WordPress. The admin bar shows the name of a signed-in visitor. The form for comments shows the name of a commenter.

use xtask::failure::Failure;

use super::compare;
use crate::storefronts::{
    kind::Kind,
    tally::Violation,
    visitor::{Page, Visitor, refused},
};

pub fn products() -> Vec<String> {
    let materials = ["oak", "steel", "linen", "ceramic"];
    let things = ["mug", "lamp", "chair", "basket", "clock", "kettle", "shelf", "apron", "bowl", "stool"];
    let names = things.into_iter().flat_map(|thing| materials.map(|material| format!("/{material}-{thing}/")));
    // The first post has a password.
    names.skip(1).collect()
}

/// The name of the visitor's account in the seed.
fn account_name(visitor: &Visitor) -> String {
    format!("Vera Visitor {}", visitor.number)
}

fn commenter_name(visitor: &Visitor) -> String {
    format!("Carl Commenter {}", visitor.number)
}

pub async fn sign_in(visitor: &Visitor) -> Result<(), Failure> {
    visitor.get("/wp-login.php").await?;
    let (name, password) = (format!("visitor-{}", visitor.number), format!("visitor-password-{}", visitor.number));
    let fields = [("log", name.as_str()), ("pwd", &password), ("testcookie", "1"), ("wp-submit", "Log In")];
    let page = visitor.post_form("/wp-login.php", &fields).await?;
    if shown_name(&page) == Some(&account_name(visitor)) { Ok(()) } else { Err(refused("to sign in", &page)) }
}

/// Follows the link of the admin bar. Its nonce belongs to the visitor.
pub async fn sign_out(visitor: &Visitor) -> Result<(), Failure> {
    let page = visitor.get("/").await?;
    let nonce = page.between("wp-login.php?action=logout&#038;_wpnonce=", "'");
    let nonce = nonce.ok_or_else(|| refused("a link to sign out", &page))?;
    let page = visitor.get(&format!("/wp-login.php?action=logout&_wpnonce={nonce}")).await?;
    if page.body.contains("logged out") { Ok(()) } else { Err(refused("to sign out", &page)) }
}

/// Writes a comment, which waits for approval, and lets WordPress keep the name in cookies.
pub async fn comment(visitor: &Visitor) -> Result<(), Failure> {
    if visitor.kind != Kind::Basket {
        return Ok(());
    }
    let page = visitor.get("/steel-mug/").await?;
    let post = page.between("name='comment_post_ID' value='", "'").unwrap_or_default();
    let (name, email) = (commenter_name(visitor), format!("commenter-{}@shop.test", visitor.number));
    // The same comment twice would be refused, also in the next run.
    let comment = format!("A remark of {name}, {:?}", std::time::SystemTime::now());
    let fields = [
        ("comment", comment.as_str()),
        ("author", &name),
        ("email", &email),
        ("wp-comment-cookies-consent", "yes"),
        ("comment_post_ID", post),
        ("comment_parent", "0"),
    ];
    let page = visitor.post_form("/wp-comments-post.php", &fields).await?;
    if page.body.contains("awaiting moderation") { Ok(()) } else { Err(refused("a comment", &page)) }
}

pub fn check(visitor: &Visitor, page: &Page) -> Option<Violation> {
    let own = visitor.is_signed_in.then(|| account_name(visitor));
    // Posts have the form; lists do not.
    let author = page.between("id=\"author\" name=\"author\" type=\"text\" value=\"", "\"");
    let commenter = (visitor.kind == Kind::Basket && author.is_some()).then(|| commenter_name(visitor));
    compare("admin bar", shown_name(page), own.as_deref())
        .or_else(|| compare("commenter", author.filter(|name| !name.is_empty()), commenter.as_deref()))
        .or_else(|| foreign_comment(visitor, page))
}

fn shown_name(page: &Page) -> Option<&str> {
    page.between("<span class=\"display-name\">", "<")
}

/// A comment that waits for approval is for its author only.
fn foreign_comment(visitor: &Visitor, page: &Page) -> Option<Violation> {
    let mut authors = page.body.split("A remark of ").skip(1).filter_map(|rest| rest.split(',').next());
    let own = commenter_name(visitor);
    let foreign = authors.find(|author| visitor.kind != Kind::Basket || **author != own)?;
    Some(Violation::Leak(format!("a waiting comment of {foreign}")))
}
