//! Options of the command line that are settings of the library.

/// Declares the options of a command. `=> NAME` after an option is the setting that it fills, so that a new option has one
/// place here and one in the library.
macro_rules! settings_args {
    ($(#[$of:meta])* pub(crate) struct $name:ident for $settings:ty {
        $($(#[$meta:meta])* $field:ident: $type:ty $(=> $setting:ident)?,)*
    }) => {
        $(#[$of])*
        pub(crate) struct $name {
            $($(#[$meta])* $field: $type,)*
        }

        impl $name {
            /// Fills the settings that have an option of their own.
            fn fill(&self, settings: &mut $settings) {
                $($(settings.$setting = self.$field;)?)*
            }
        }
    };
}

pub(crate) use settings_args;
